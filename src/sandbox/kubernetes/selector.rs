//! Label and field selectors of list and watch requests: labels that are there or have a value, and one name.
//!
//! All that our program and `kubectl describe` select by; anything else is refused. Not for the selectors inside objects: the controller
//! finds its children by ownership.

use std::collections::BTreeMap;

use super::failure::Failure;

/// What a list or watch is narrowed to. The default matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Labels, each with the value it must have.
    labels: Vec<(String, Option<String>)>,
    name: Option<String>,
}

impl Selector {
    /// Parses the two query parameters; empty ones match everything.
    ///
    /// # Errors
    /// 400 for a selector that is malformed or asks for something else.
    pub fn parse(labels: &str, fields: &str) -> Result<Selector, Failure> {
        let mut selector = Selector::default();
        for term in terms(labels) {
            let (key, value) = comparison(term).map_or((term, None), |(key, value)| (key, Some(value)));
            if !is_label(key) || !value.is_none_or(|value| value.is_empty() || is_label(value)) {
                let why = format!("unable to parse requirement: found '{term}' in label selector '{labels}'");
                return Err(Failure::bad_request(why));
            }
            selector.labels.push((key.to_owned(), value.map(str::to_owned)));
        }
        for term in terms(fields) {
            match comparison(term) {
                Some(("metadata.name", name)) => selector.name = Some(name.to_owned()),
                _ => return Err(Failure::bad_request(format!("field label not supported: {term}"))),
            }
        }
        Ok(selector)
    }

    pub fn is_empty(&self) -> bool {
        *self == Selector::default()
    }

    /// Whether an object with this name and these labels is selected.
    pub fn matches(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        let has = |(key, value): &(String, Option<String>)| {
            labels.get(key).is_some_and(|actual| value.as_ref().is_none_or(|value| value == actual))
        };
        self.labels.iter().all(has) && self.name.as_ref().is_none_or(|wanted| wanted == name)
    }
}

pub fn terms(selector: &str) -> impl Iterator<Item = &str> {
    selector.split(',').map(str::trim).filter(|term| !term.is_empty())
}

/// `key=value` or `key==value`.
pub fn comparison(term: &str) -> Option<(&str, &str)> {
    let (key, value) = term.split_once("==").or_else(|| term.split_once('='))?;
    Some((key.trim(), value.trim()))
}

/// Whether this can be a key or a value of a label.
fn is_label(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_a_name_select_and_all_else_is_refused() {
        let web = BTreeMap::from([("app", "web"), ("tier", "front")].map(|(k, v)| (k.to_owned(), v.to_owned())));
        let selects = |labels, fields| Selector::parse(labels, fields).unwrap().matches("web-1", &web);
        for yes in ["", "app=web", "app==web", "tier", "app = web, tier"] {
            assert!(selects(yes, "") && selects(yes, "metadata.name=web-1"), "{yes}");
        }
        for no in ["app=api", "zone", "app=web,zone", "app="] {
            assert!(!selects(no, ""), "{no}");
        }
        assert!(!selects("", "metadata.name=web"));
        for bad in ["app in (web)", "app!=web", "!app", "app>3", "=x", "a b"] {
            assert_eq!(Selector::parse(bad, "").unwrap_err().code, 400, "{bad}");
        }
        assert_eq!(Selector::parse("", "metadata.name!=web").unwrap_err().code, 400);
        assert_eq!(Selector::parse("", "spec.replicas=1").unwrap_err().code, 400);
    }
}
