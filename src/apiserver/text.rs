//! Lists and watch lines taken apart into objects. Each is then decoded, or not, by itself.
//!
//! One broken object must cost nothing but itself (fault W7), so nothing here looks further into an object than its
//! name. What cannot even be divided into objects is a failure of the whole answer.
//!
//! Not for what objects mean; that is the caller's [`Decoder`].

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::failure::Failure;
use kernel::unreadable::Unreadable;

/// The annotation on the bookmark that ends the initial events of a streaming list.
/// <https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists>
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What stands where bytes were no UTF-8.
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// Turns the JSON of one object into what is kept of it, or says why it cannot be read.
pub type Decoder<T> = fn(&str) -> Result<T, Unreadable>;

/// An object, as far as it could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading<T> {
    /// What is kept of it.
    Read(T),
    /// Its name, and why the rest cannot be read.
    Unreadable(Name, Unreadable),
}

/// Which object; both parts are empty where not even they could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name {
    pub namespace: String,
    pub name: String,
}

/// One page of a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<Reading<T>>,
    /// The version of the whole list.
    pub(crate) version: String,
    /// The token for the next page; `None` on the last one.
    pub(crate) next: Option<String>,
}

/// One line of a watch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<T> {
    /// An object is there, as of a version (empty where it could not be read).
    Seen(Reading<T>, String),
    /// An object is gone, as of a version.
    Gone(Name, String),
    /// Everything up to this version has been reported.
    Bookmark {
        version: String,
        /// The initial events are complete.
        initial_end: bool,
    },
    /// The watch has failed.
    Error(Failure),
}

#[derive(Deserialize)]
struct RawPage<'a> {
    metadata: Option<RawListMeta>,
    // An empty list of some kinds is written as null.
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawListMeta {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct RawLine<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct RawObject<'a> {
    #[serde(borrow)]
    metadata: RawMeta<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawMeta<'a> {
    #[serde(borrow)]
    namespace: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    resource_version: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

/// Takes a page of a list apart.
///
/// # Errors
/// When the answer is not a list.
pub(crate) fn page<T>(body: &[u8], decode: impl Fn(&str) -> Result<T, Unreadable>) -> Result<Page<T>, Failure> {
    let text = Text::of(body);
    let raw: RawPage<'_> =
        serde_json::from_str(&text.text).map_err(|error| Failure::unanswered(format!("not a list: {error}")))?;
    let metadata = raw.metadata.unwrap_or(RawListMeta { resource_version: None, next: None });
    Ok(Page {
        items: raw.items.unwrap_or_default().into_iter().map(|object| text.reading(object, &decode)).collect(),
        version: metadata.resource_version.unwrap_or_default(),
        next: metadata.next.filter(|token| !token.is_empty()),
    })
}

/// The most of a list's beginning that is searched for its metadata.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A page of one object that was cut off in it: the page without the object, which is reported as unreadable. The API server
/// writes the metadata of a list before its items. `None` where that is not so.
pub(crate) fn head<T>(body: &[u8]) -> Option<Page<T>> {
    let text = String::from_utf8_lossy(body.get(..body.len().min(HEAD_BYTES_MAX))?);
    let (before, object) = text.split_once("\"items\":[")?;
    let whole = format!("{before}\"items\":[]}}");
    let metadata = serde_json::from_str::<RawPage<'_>>(&whole).ok()?.metadata?;
    // As the API server writes objects: `{"metadata":{"name":"web","namespace":"shop",…`.
    let named = |field: &str| {
        let (_, rest) = object.split_once(&format!("\"{field}\":\""))?;
        rest.split_once('"').map(|(name, _)| name.to_owned()).filter(|name| is_object_name(name))
    };
    let name = Name { namespace: named("namespace").unwrap_or_default(), name: named("name").unwrap_or_default() };
    Some(Page {
        items: vec![Reading::Unreadable(name, Unreadable::TooLarge)],
        version: metadata.resource_version.filter(|version| !version.is_empty())?,
        next: metadata.next.filter(|token| !token.is_empty()),
    })
}

/// Most characters of a name (RFC 1123, as Kubernetes reads it).
/// <https://kubernetes.io/docs/concepts/overview/working-with-objects/names/>
const NAME_CHARS_MAX: usize = 253;

/// Whether an object, or a namespace, can have this name: labels of lower-case letters, digits and hyphens inside, with dots
/// between them.
pub fn is_object_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && label.bytes().all(inside)
    };
    text.len() <= NAME_CHARS_MAX && text.split('.').all(is_label)
}

/// Takes a line of a watch apart.
///
/// # Errors
/// When it is not a line of a watch.
pub(crate) fn line<T>(bytes: &[u8], decode: impl Fn(&str) -> Result<T, Unreadable>) -> Result<Line<T>, Failure> {
    let text = Text::of(bytes);
    let raw: RawLine<'_> =
        serde_json::from_str(&text.text).map_err(|error| Failure::unanswered(format!("not a watch line: {error}")))?;
    let Identity { name, version, annotations } = identify(raw.object.get());
    match &*raw.kind {
        "ADDED" | "MODIFIED" => Ok(Line::Seen(text.reading(raw.object, decode), version)),
        "DELETED" => Ok(Line::Gone(name, version)),
        "BOOKMARK" => {
            let initial_end = annotations.is_some_and(|raw| raw.get().contains(INITIAL_EVENTS_END));
            Ok(Line::Bookmark { version, initial_end })
        }
        "ERROR" => Ok(Line::Error(
            Failure::of_status(raw.object.get())
                .unwrap_or_else(|| Failure::unanswered("an error the API server does not explain")),
        )),
        other => Err(Failure::unanswered(format!("a watch line of unknown type {other:?}"))),
    }
}

/// Reads one object of a list.
pub(crate) fn item<T>(bytes: &[u8], decode: impl Fn(&str) -> Result<T, Unreadable>) -> Reading<T> {
    object(bytes, decode)
        .map_or_else(|why| Reading::Unreadable(identify(&String::from_utf8_lossy(bytes)).name, why), Reading::Read)
}

/// Reads one object that was asked for by name.
pub(crate) fn object<T>(body: &[u8], decode: impl Fn(&str) -> Result<T, Unreadable>) -> Result<T, Unreadable> {
    let text = Text::of(body);
    if text.repaired { Err(Unreadable::NotUtf8) } else { decode(&text.text) }
}

/// An answer as text. Bytes that are no UTF-8 are replaced, so that the objects without any can still be read.
struct Text<'a> {
    text: Cow<'a, str>,
    repaired: bool,
}

impl<'a> Text<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        Self { repaired: matches!(text, Cow::Owned(_)), text }
    }

    fn reading<T>(&self, object: &RawValue, decode: impl Fn(&str) -> Result<T, Unreadable>) -> Reading<T> {
        let broken = self.repaired && object.get().contains(REPLACEMENT);
        match if broken { Err(Unreadable::NotUtf8) } else { decode(object.get()) } {
            Ok(item) => Reading::Read(item),
            Err(why) => Reading::Unreadable(identify(object.get()).name, why),
        }
    }
}

/// What can be read of an object whatever else is wrong with it.
struct Identity<'a> {
    name: Name,
    version: String,
    annotations: Option<&'a RawValue>,
}

fn identify(object: &str) -> Identity<'_> {
    let metadata = serde_json::from_str(object).map_or_else(|_| RawMeta::default(), |raw: RawObject<'_>| raw.metadata);
    let read = |raw: Option<&RawValue>| raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    Identity {
        name: Name { namespace: read(metadata.namespace), name: read(metadata.name) },
        version: read(metadata.resource_version),
        annotations: metadata.annotations,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::unreadable::WORDS_BYTES_MAX;

    // Faults: T15
    #[test]
    fn a_name_is_what_the_api_server_takes_for_one() {
        for good in ["edge", "edge-1.infra", "0", &"a".repeat(NAME_CHARS_MAX)] {
            assert!(is_object_name(good), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "../x", "A", "a_b", "-a", "a-", "a..b", "a b", "a?watch=1", "%2e", "é", "a\n"]
        {
            assert!(!is_object_name(bad), "{bad}");
        }
        assert!(!is_object_name(&"a".repeat(NAME_CHARS_MAX + 1)));
    }

    /// Keeps the image, which must be a string.
    fn image(object: &str) -> Result<String, Unreadable> {
        #[derive(Deserialize)]
        struct Object {
            image: String,
        }
        Ok(serde_json::from_str(object).map(|object: Object| object.image)?)
    }

    fn read(image: &str) -> Reading<String> {
        Reading::Read(image.to_owned())
    }

    #[test]
    fn one_broken_object_costs_only_itself() {
        let body = br#"{"metadata":{"resourceVersion":"7","continue":""},"items":[
            {"metadata":{"namespace":"shop","name":"a"},"image":"a:1"},
            {"metadata":{"namespace":"shop","name":"b"},"image":7},
            {"metadata":null},
            {"metadata":{"namespace":"shop","name":"c"},"image":"c:1"}]}"#;
        let page = page(body, image).unwrap();
        assert_eq!((page.version.as_str(), &page.next), ("7", &None));
        assert_eq!(page.items[0], read("a:1"));
        assert_eq!(page.items[3], read("c:1"));
        let Reading::Unreadable(name, why) = &page.items[1] else { panic!("{:?}", page.items[1]) };
        assert_eq!((name.namespace.as_str(), name.name.as_str()), ("shop", "b"));
        assert!(why.to_string().contains("expected a string"), "{why}");
        assert!(matches!(&page.items[2], Reading::Unreadable(name, _) if *name == Name::default()));
    }

    #[test]
    fn why_an_object_cannot_be_read_is_cut_however_much_of_it_the_parser_repeats() {
        let body = format!(r#"{{"items":[{{"metadata":{{"name":"a"}},"image":{{"{}":1}}}}]}}"#, "x".repeat(200_000));
        let page = page(body.as_bytes(), |object| Err::<String, _>(Unreadable::because(object))).unwrap();
        let Reading::Unreadable(_, why) = &page.items[0] else { panic!("{page:?}") };
        assert!(why.to_string().len() <= WORDS_BYTES_MAX, "{why}");
    }

    #[test]
    fn bytes_that_are_no_utf8_make_only_their_own_object_unreadable() {
        let body =
            b"{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"metadata\":{\"name\":\"a\"},\"image\":\"\xff\"},\
            {\"metadata\":{\"name\":\"b\"},\"image\":\"b:1\"}]}";
        let page = page(body, image).unwrap();
        assert!(
            matches!(&page.items[0], Reading::Unreadable(name, why) if name.name == "a" && *why == Unreadable::NotUtf8)
        );
        assert_eq!(page.items[1], read("b:1"));
    }

    #[test]
    fn the_beginning_of_a_list_says_where_it_goes_on() {
        let body = br#"{"kind":"DeploymentList","metadata":{"resourceVersion":"7","continue":"abc"},"items":[{"metadata":{"name":"web","namespace":"shop","annotations":{"a":"xxx"#;
        let page: Page<String> = head(body).unwrap();
        assert_eq!((page.version.as_str(), page.next.as_deref()), ("7", Some("abc")));
        let name = Name { namespace: "shop".into(), name: "web".into() };
        assert_eq!(page.items, [Reading::Unreadable(name, Unreadable::TooLarge)]);
        for other in
            [&b"{\"items\":[{\"metadata\":{\"name\":"[..], b"", b"[1,", b"{\"metadata\":{\"resourceVersion\":\"7\""]
        {
            assert!(head::<String>(other).is_none());
        }
    }

    #[test]
    fn a_genuine_replacement_character_is_no_damage() {
        let body = "{\"items\":[{\"metadata\":{\"name\":\"a\"},\"image\":\"\u{fffd}\"}]}";
        assert_eq!(page(body.as_bytes(), image).unwrap().items, [read("\u{fffd}")]);
    }

    #[test]
    fn every_kind_of_line_is_told_apart() {
        let read_line = |text: &str| line(text.as_bytes(), image);
        let seen = read_line(r#"{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"8"},"image":"a:2"}}"#);
        assert_eq!(seen, Ok(Line::Seen(read("a:2"), "8".into())));
        let gone = read_line(r#"{"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"9"}}}"#);
        assert_eq!(gone, Ok(Line::Gone(Name { namespace: String::new(), name: "a".into() }, "9".into())));
        let end = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9",
            "annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
        assert_eq!(read_line(end), Ok(Line::Bookmark { version: "9".into(), initial_end: true }));
        let expired = read_line(r#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#);
        assert!(matches!(expired, Ok(Line::Error(Failure { status: Some(410), .. }))));
        assert!(read_line(r#"{"type":"MODIFIED","object":{"metadata":{"na"#).is_err());
        assert!(read_line(r#"{"type":"MOVED","object":{}}"#).is_err());
    }
}
