//! Texts that come again and again, each kept once.

use std::collections::HashMap;
use std::rc::Rc;

/// The number of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(u32);

#[derive(Debug, Default)]
pub struct Names {
    numbers: HashMap<Rc<str>, Name>,
    texts: Vec<Rc<str>>,
}

impl Names {
    pub fn of(&mut self, text: &str) -> Name {
        if let Some(name) = self.numbers.get(text) {
            return *name;
        }
        let name = Name(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        let text: Rc<str> = text.into();
        self.texts.push(Rc::clone(&text));
        self.numbers.insert(text, name);
        name
    }

    /// The number of a text that is there already.
    pub fn find(&self, text: &str) -> Option<Name> {
        self.numbers.get(text).copied()
    }

    pub fn text(&self, name: Name) -> &str {
        usize::try_from(name.0).ok().and_then(|at| self.texts.get(at)).map_or("", |text| text)
    }
}
