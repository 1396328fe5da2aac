//! Pieces of an expression with their columns, so that an error can point at its column.

/// A piece of an expression's text, and the column of its first character, counted in characters from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextSpan<'t> {
    pub(super) text: &'t str,
    pub(super) column: usize,
}

impl<'t> TextSpan<'t> {
    pub(super) fn from_text(text: &'t str) -> Self {
        Self { text, column: 1 }
    }

    /// The words of this piece, separated by white space.
    pub(super) fn split_words(self) -> impl Iterator<Item = TextSpan<'t>> {
        let start = self.text.as_ptr() as usize;
        self.text.split_whitespace().map(move |word| self.subspan(word.as_ptr() as usize - start, word.len()))
    }

    /// The pieces between commas, empty ones included.
    pub(super) fn split_commas(self) -> impl Iterator<Item = TextSpan<'t>> {
        let start = self.text.as_ptr() as usize;
        self.text.split(',').map(move |item| self.subspan(item.as_ptr() as usize - start, item.len()))
    }

    /// The pieces before and after the first `separator`.
    pub(super) fn split_once(self, separator: char) -> Option<(TextSpan<'t>, TextSpan<'t>)> {
        let at = self.text.find(separator)?;
        let after = at + separator.len_utf8();
        Some((self.subspan(0, at), self.subspan(after, self.text.len() - after)))
    }

    /// This piece without the letter `suffix`, in upper or lower case, at its end; None if it does not end so.
    pub(super) fn strip_suffix(self, suffix: char) -> Option<TextSpan<'t>> {
        let text = self.text.strip_suffix([suffix.to_ascii_uppercase(), suffix.to_ascii_lowercase()])?;
        Some(TextSpan { text, column: self.column })
    }

    /// This piece without the letter `prefix`, in upper or lower case, at its start; None if it does not begin so.
    pub(super) fn strip_prefix(self, prefix: char) -> Option<TextSpan<'t>> {
        let text = self.text.strip_prefix([prefix.to_ascii_uppercase(), prefix.to_ascii_lowercase()])?;
        Some(TextSpan { text, column: self.column + 1 })
    }

    /// Parses a whole number of at most four digits.
    pub(super) fn parse_number(self) -> Option<u16> {
        let digits = self.text.len() <= 4 && self.text.bytes().all(|b| b.is_ascii_digit());
        if digits { self.text.parse().ok() } else { None }
    }

    pub(super) fn eq_ignore_case(self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }

    fn subspan(self, bytes: usize, length: usize) -> TextSpan<'t> {
        let column = self.column + self.text[..bytes].chars().count();
        TextSpan { text: &self.text[bytes..bytes + length], column }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_span_have_their_columns() {
        let words: Vec<_> = TextSpan::from_text("  0 5,ä,7\t*").split_words().collect();
        assert_eq!(
            words.iter().map(|w| (w.text, w.column)).collect::<Vec<_>>(),
            [("0", 3), ("5,ä,7", 5), ("*", 11)]
        );
        let items: Vec<_> = words[1].split_commas().map(|item| item.column).collect();
        assert_eq!(items, [5, 7, 9]);
        let (before, after) = TextSpan::from_text("1-5/2").split_once('/').unwrap();
        assert_eq!((before.text, after.text, after.column), ("1-5", "2", 5));
    }
}
