//! Buffers of commands in the wire format of Redis.

/// Maximum number of arguments of one command: a script cannot unpack many more.
const MAX_ARGS_PER_COMMAND: usize = 2_000;
/// Bytes reserved for the length prefix of a command: `*`, the number of arguments, and a line end.
const LENGTH_PREFIX_CAPACITY: usize = 24;

/// Arguments of one command, encoded in the Redis protocol. For `commit.lua` they include whole commands.
#[derive(Debug, Default)]
pub(crate) struct CommandArgsBuffer {
    bytes: Vec<u8>,
    arg_count: usize,
}

impl CommandArgsBuffer {
    pub(crate) fn is_empty(&self) -> bool {
        self.arg_count == 0
    }

    pub(crate) fn arg_count(&self) -> usize {
        self.arg_count
    }

    pub(crate) fn push_arg(&mut self, arg: impl AsRef<[u8]>) {
        write_bulk_string(arg.as_ref(), &mut self.bytes);
        self.arg_count += 1;
    }

    pub(crate) fn push_args<W: AsRef<[u8]>>(&mut self, args: impl IntoIterator<Item = W>) {
        args.into_iter().for_each(|arg| self.push_arg(arg));
    }

    /// Adds a command for `commit.lua`: its number of arguments, then the arguments.
    pub(crate) fn push_command_for_script<W: AsRef<[u8]>>(&mut self, command: &[W]) {
        self.push_arg(command.len().to_string());
        self.push_args(command);
    }

    /// Adds a command for `commit.lua` with many items of `args_per_item` arguments, split into several commands if a
    /// script could not unpack all arguments at once.
    pub(crate) fn push_chunked_command_for_script<W: AsRef<[u8]>>(
        &mut self,
        command: &[&[u8]],
        args_per_item: usize,
        args: &[W],
    ) {
        for chunk in args.chunks(MAX_ARGS_PER_COMMAND / args_per_item * args_per_item) {
            self.push_arg((command.len() + chunk.len()).to_string());
            self.push_args(command);
            self.push_args(chunk);
        }
    }

    pub(crate) fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(&other.bytes);
        self.arg_count += other.arg_count;
    }

    /// Encodes all arguments as one command.
    pub(crate) fn encode_as_one_command(&self) -> Vec<u8> {
        let mut command = Vec::with_capacity(LENGTH_PREFIX_CAPACITY + self.bytes.len());
        write_length_prefix(b'*', self.arg_count, &mut command);
        command.extend_from_slice(&self.bytes);
        command
    }
}

/// Appends an encoded command to a buffer.
pub(crate) fn encode_command_into(args: &[Vec<u8>], encoded: &mut Vec<u8>) {
    write_length_prefix(b'*', args.len(), encoded);
    args.iter().for_each(|arg| write_bulk_string(arg, encoded));
}

fn write_bulk_string(arg: &[u8], bytes: &mut Vec<u8>) {
    write_length_prefix(b'$', arg.len(), bytes);
    bytes.extend_from_slice(arg);
    bytes.extend_from_slice(b"\r\n");
}

fn write_length_prefix(sign: u8, count: usize, bytes: &mut Vec<u8>) {
    bytes.push(sign);
    // Most arguments are short: their lengths are formatted without an allocation.
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
    fn encoded_command_follows_the_redis_protocol() {
        let mut buffer = CommandArgsBuffer::default();
        buffer.push_arg("GET");
        let mut more = CommandArgsBuffer::default();
        more.push_args(["0123456789", ""]);
        buffer.append(&more);
        assert_eq!(buffer.encode_as_one_command(), b"*3\r\n$3\r\nGET\r\n$10\r\n0123456789\r\n$0\r\n\r\n");
    }

    #[test]
    fn argument_lengths_are_encoded_correctly() {
        for length in [0, 1, 9, 10, 57, 99, 100, 255, 256, 1_000, 123_456] {
            let (mut encoded, arg) = (Vec::new(), vec![b'x'; length]);
            encode_command_into(std::slice::from_ref(&arg), &mut encoded);
            let expected = format!("*1\r\n${length}\r\n{}\r\n", "x".repeat(length));
            assert!(encoded == expected.as_bytes(), "{length}");
        }
    }
}
