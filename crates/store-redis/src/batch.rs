//! Commands as they go over the wire, put together without a detour.

/// So many words go into one command at most: a script cannot pass on many more.
const WORDS: usize = 2_000;

/// The words of commands, one after the other, as Redis reads them.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    words: usize,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.words == 0
    }

    pub(crate) fn words(&self) -> usize {
        self.words
    }

    pub(crate) fn add(&mut self, word: impl AsRef<[u8]>) {
        let word = word.as_ref();
        self.bytes.push(b'$');
        self.digits(word.len());
        self.bytes.extend_from_slice(b"\r\n");
        self.bytes.extend_from_slice(word);
        self.bytes.extend_from_slice(b"\r\n");
        self.words += 1;
    }

    pub(crate) fn add_all<W: AsRef<[u8]>>(&mut self, words: impl IntoIterator<Item = W>) {
        words.into_iter().for_each(|word| self.add(word));
    }

    /// Adds a command for the script that commits: the number of its words before them.
    pub(crate) fn write<W: AsRef<[u8]>>(&mut self, command: &[W]) {
        self.add(command.len().to_string());
        self.add_all(command);
    }

    /// Adds a command that is given many things of `each` words: as many commands as the script can pass on.
    pub(crate) fn write_many<W: AsRef<[u8]>>(&mut self, begin: &[&[u8]], each: usize, words: &[W]) {
        for some in words.chunks(WORDS / each * each) {
            self.add((begin.len() + some.len()).to_string());
            self.add_all(begin);
            self.add_all(some);
        }
    }

    pub(crate) fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(&other.bytes);
        self.words += other.words;
    }

    /// All of it as one command.
    pub(crate) fn command(&self) -> Vec<u8> {
        let mut head = Self::default();
        head.bytes.push(b'*');
        head.digits(self.words);
        head.bytes.extend_from_slice(b"\r\n");
        let mut command = head.bytes;
        command.reserve(self.bytes.len());
        command.extend_from_slice(&self.bytes);
        command
    }

    fn digits(&mut self, number: usize) {
        // Most words are short.
        if number < 10 {
            return self.bytes.push(b'0' + number as u8);
        }
        self.bytes.extend_from_slice(number.to_string().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_reads_as_the_protocol_has_it() {
        let mut batch = Batch::default();
        batch.add("GET");
        let mut more = Batch::default();
        more.add_all(["0123456789", ""]);
        batch.append(&more);
        assert_eq!(batch.command(), b"*3\r\n$3\r\nGET\r\n$10\r\n0123456789\r\n$0\r\n\r\n");
    }
}
