//! Pieces of an expression that remember where they stood, so that an error can point at its column.

/// A piece of the text and the column, counted in characters from 1, of its first character.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'t> {
    pub(super) text: &'t str,
    pub(super) column: usize,
}

impl<'t> Part<'t> {
    pub(super) fn whole(text: &'t str) -> Self {
        Self { text, column: 1 }
    }

    /// The words of this piece, as white space divides them.
    pub(super) fn words(self) -> impl Iterator<Item = Part<'t>> {
        let start = self.text.as_ptr() as usize;
        self.text.split_whitespace().map(move |word| self.skip(word.as_ptr() as usize - start, word.len()))
    }

    /// The pieces that commas divide, empty ones included.
    pub(super) fn list(self) -> impl Iterator<Item = Part<'t>> {
        let start = self.text.as_ptr() as usize;
        self.text.split(',').map(move |item| self.skip(item.as_ptr() as usize - start, item.len()))
    }

    /// What stands before and after the first `mark`.
    pub(super) fn split_once(self, mark: char) -> Option<(Part<'t>, Part<'t>)> {
        let at = self.text.find(mark)?;
        let after = at + mark.len_utf8();
        Some((self.skip(0, at), self.skip(after, self.text.len() - after)))
    }

    /// This piece without its last `suffix`, in any case, if it ends with it.
    pub(super) fn strip_suffix(self, suffix: char) -> Option<Part<'t>> {
        let text = self.text.strip_suffix([suffix.to_ascii_uppercase(), suffix.to_ascii_lowercase()])?;
        Some(Part { text, column: self.column })
    }

    /// This piece without its first `prefix`, in any case, if it begins with it.
    pub(super) fn strip_prefix(self, prefix: char) -> Option<Part<'t>> {
        let text = self.text.strip_prefix([prefix.to_ascii_uppercase(), prefix.to_ascii_lowercase()])?;
        Some(Part { text, column: self.column + 1 })
    }

    /// A whole number, if this is one of at most four digits.
    pub(super) fn number(self) -> Option<u16> {
        let digits = self.text.len() <= 4 && self.text.bytes().all(|b| b.is_ascii_digit());
        if digits { self.text.parse().ok() } else { None }
    }

    pub(super) fn is(self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }

    fn skip(self, bytes: usize, length: usize) -> Part<'t> {
        let column = self.column + self.text[..bytes].chars().count();
        Part { text: &self.text[bytes..bytes + length], column }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_know_their_columns() {
        let words: Vec<_> = Part::whole("  0 5,ä,7\t*").words().collect();
        assert_eq!(
            words.iter().map(|w| (w.text, w.column)).collect::<Vec<_>>(),
            [("0", 3), ("5,ä,7", 5), ("*", 11)]
        );
        let items: Vec<_> = words[1].list().map(|item| item.column).collect();
        assert_eq!(items, [5, 7, 9]);
        let (before, after) = Part::whole("1-5/2").split_once('/').unwrap();
        assert_eq!((before.text, after.text, after.column), ("1-5", "2", 5));
    }
}
