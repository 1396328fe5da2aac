//! Commands as they go over the wire, put together without a detour.

/// So many words go into one command at most: a script cannot pass on many more.
const WORDS: usize = 2_000;
/// What a command begins with is no longer than this.
const HEAD: usize = 24;

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
        put(word.as_ref(), &mut self.bytes);
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
        let mut command = Vec::with_capacity(HEAD + self.bytes.len());
        put_count(b'*', self.words, &mut command);
        command.extend_from_slice(&self.bytes);
        command
    }
}

/// Puts a command behind what is packed already.
pub(crate) fn pack(words: &[Vec<u8>], packed: &mut Vec<u8>) {
    put_count(b'*', words.len(), packed);
    words.iter().for_each(|word| put(word, packed));
}

fn put(word: &[u8], bytes: &mut Vec<u8>) {
    put_count(b'$', word.len(), bytes);
    bytes.extend_from_slice(word);
    bytes.extend_from_slice(b"\r\n");
}

fn put_count(sign: u8, count: usize, bytes: &mut Vec<u8>) {
    bytes.push(sign);
    // Most words are short.
    match u8::try_from(count) {
        Ok(count @ 0..10) => bytes.push(b'0' + count),
        Ok(count @ 10..100) => bytes.extend([b'0' + count / 10, b'0' + count % 10]),
        _ => bytes.extend_from_slice(count.to_string().as_bytes()),
    }
    bytes.extend_from_slice(b"\r\n");
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

    #[test]
    fn words_of_every_length_are_counted() {
        for length in [0, 1, 9, 10, 57, 99, 100, 255, 256, 1_000, 123_456] {
            let (mut packed, word) = (Vec::new(), vec![b'x'; length]);
            pack(std::slice::from_ref(&word), &mut packed);
            let expected = format!("*1\r\n${length}\r\n{}\r\n", "x".repeat(length));
            assert!(packed == expected.as_bytes(), "{length}");
        }
    }
}
