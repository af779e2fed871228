//! Image references and versions.

use std::collections::BTreeMap;

use kernel::names::image::{Beside, Container, Fields, Image, Version, difference};
use proptest::prelude::*;
use serde_json::json;

fn digest() -> impl Strategy<Value = String> {
    prop_oneof!["sha256:[0-9a-f]{64}", "sha512:[0-9a-f]{128}"]
}

/// References people write, most of them valid.
fn reference() -> impl Strategy<Value = String> {
    let registry = prop_oneof![
        4 => Just(String::new()),
        1 => Just("docker.io/".to_owned()),
        1 => Just("index.docker.io/".to_owned()),
        1 => Just("localhost/".to_owned()),
        3 => "[a-zA-Z]{1,8}(\\.[a-z]{2,5}){0,2}(:[0-9]{1,5})?/",
        1 => Just("[2001:db8::1]:5000/".to_owned()),
    ];
    let repository = "(library/)?[a-z0-9]{1,6}([._-][a-z0-9]{1,3})?(/[a-z0-9]{1,6}){0,2}";
    let tag = prop_oneof![Just(String::new()), "[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,12}".prop_map(|tag| format!(":{tag}"))];
    let digest = prop_oneof![2 => Just(String::new()), 1 => digest().prop_map(|digest| format!("@{digest}"))];
    (registry, repository, tag, digest)
        .prop_map(|(registry, name, tag, digest)| format!("{registry}{name}{tag}{digest}"))
}

/// Few distinct images, so that equal ones are common.
fn image() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "app:1".to_owned(),
        "app:2".to_owned(),
        "eu.example.com/mirror/library/app:1".to_owned(),
        "us.example.com/library/app:1".to_owned(),
        format!("app:1@sha256:{}", "a".repeat(64)),
        format!("app:2@sha256:{}", "a".repeat(64)),
        format!("app:1@sha256:{}", "b".repeat(64)),
        format!("app@sha256:{}", "b".repeat(64)),
    ])
}

fn version() -> impl Strategy<Value = Version> {
    let container = prop::sample::select(vec!["web", "init:migrate", "volume:content"]);
    let images = prop::collection::btree_map(container, image(), 0..3);
    let of = |(images, beside): (BTreeMap<&str, String>, Option<Beside>)| {
        let image = |(name, text): (&str, String)| (Container::from(name.to_owned()), text.parse().unwrap());
        images.into_iter().map(image).collect::<Version>().with(beside)
    };
    (images, beside()).prop_map(of)
}

fn beside() -> impl Strategy<Value = Option<Beside>> {
    let template = |env: &str| Some(Beside::Template(Fields::of(&json!({"metadata": {"labels": {"env": env}}}))));
    let annotation = |value| Some(Beside::annotation("example.com/site", value));
    let all = vec![template("1"), template("2"), annotation(None), annotation(Some("1")), annotation(Some(""))];
    prop_oneof![3 => Just(None), 2 => prop::sample::select(all)]
}

proptest! {
    #[test]
    fn an_image_survives_its_own_text(text in reference()) {
        if let Ok(image) = Image::parse(&text) {
            let written = image.to_string();
            prop_assert_eq!(Image::parse(&written), Ok(image.clone()), "{} → {}", text, written);
            prop_assert!(image.tag().is_some() || image.digest().is_some());
            let stored = serde_json::to_string(&image).unwrap();
            prop_assert_eq!(serde_json::from_str::<Image>(&stored).unwrap(), image);
        }
    }

    // Goal: the generator above, and so the other properties, are not vacuous.
    #[test]
    fn a_lower_case_reference_with_a_registry_is_accepted(
        registry in "[a-z]{1,8}\\.[a-z]{2,5}(:[0-9]{1,5})?",
        name in "[a-z0-9]{1,6}([._-][a-z0-9]{1,3})?(/[a-z0-9]{1,6}){0,2}",
        tag in "[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}",
    ) {
        let image = Image::parse(&format!("{registry}/{name}:{tag}")).unwrap();
        prop_assert_eq!((image.registry(), image.repository(), image.tag()), (&*registry, &*name, Some(&*tag)));
    }

    #[test]
    fn no_text_makes_the_parser_panic_or_its_error_long(
        text in any::<String>(),
        odd in "[a-zA-Z0-9:@/._\\[\\]+-]{0,600}",
    ) {
        for text in [text, odd] {
            if let Err(error) = Image::parse(&text) {
                prop_assert!(error.to_string().len() < 1_024);
            }
        }
    }

    #[test]
    fn the_default_registry_and_tag_may_be_left_out(name in "[a-z][a-z0-9]{0,8}(/[a-z0-9]{1,6})?") {
        let namespace = if name.contains('/') { "" } else { "library/" };
        let full = format!("docker.io/{namespace}{name}:latest");
        // A first segment `localhost` is a registry.
        prop_assume!(!name.starts_with("localhost/"));
        prop_assert_eq!(Image::parse(&name), Image::parse(&full));
    }

    #[test]
    fn a_version_survives_storage(version in version()) {
        let stored = serde_json::to_string(&version).unwrap();
        prop_assert_eq!(serde_json::from_str::<Version>(&stored).unwrap(), version);
    }

    #[test]
    fn sameness_is_reflexive_and_symmetric(one in version(), other in version(), digests in any::<bool>()) {
        prop_assert!(one.same_content(&one, digests) && one.same_across(&one));
        prop_assert_eq!(one.same_content(&other, digests), other.same_content(&one, digests));
        prop_assert_eq!(one.same_across(&other), other.same_across(&one));
    }

    // Being stricter never makes two versions the same, and no cluster boundary makes them differ.
    #[test]
    fn stricter_rules_find_less_the_same(one in version(), other in version()) {
        prop_assert!(!one.same_content(&other, false) || one.same_content(&other, true));
        prop_assert!(!one.same_content(&other, true) || one.same_across(&other));
        prop_assert!(one != other || one.same_content(&other, false));
    }

    // What completed twice in between is compared with what was purged: sameness must carry over.
    #[test]
    fn sameness_in_one_cluster_is_transitive(all in prop::array::uniform3(image()), digests: bool) {
        let [one, two, three] = all.map(|image| Version::from_iter([(Container::Main("web".into()), image.parse().unwrap())]));
        let same = |left: &Version, right: &Version| left.same_content(right, digests);
        prop_assert!(!(same(&one, &two) && same(&two, &three)) || same(&one, &three));
    }

    // Method: the rule of decisions 12 and 30, written out once more for versions of one container.
    #[test]
    fn sameness_follows_the_written_rule(mine in image(), theirs in image()) {
        let (mine, theirs): (Image, Image) = (mine.parse().unwrap(), theirs.parse().unwrap());
        let name = |image: &Image| (image.registry().to_owned(), image.repository().to_owned(), image.tag().map(str::to_owned));
        let expected = mine.digest() == theirs.digest() && (mine.digest().is_some() || name(&mine) == name(&theirs));
        let version = |image: &Image| Version::from_iter([(Container::Main("web".into()), image.clone())]);
        prop_assert_eq!(version(&mine).same_content(&version(&theirs), true), expected);
    }

    #[test]
    fn a_difference_is_told_exactly_when_there_is_one(one in version(), other in version()) {
        prop_assert_eq!(difference(&one, &other) == "no change", one == other);
    }
}
