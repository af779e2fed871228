use super::*;

fn set(texts: &[&str]) -> PathSet {
    texts.iter().map(|text| Path::parse(text).unwrap()).collect()
}

fn problem(text: &str) -> String {
    Path::parse(text).unwrap_err().to_string()
}

#[test]
fn unsafe_characters_are_encoded_and_escapes_stay_as_they_are() {
    for (text, expected) in [
        ("/a b", "/a%20b"),
        ("/naïve", "/na%C3%AFve"),
        ("/test[1].html", "/test%5B1%5D.html"),
        ("/100%", "/100%25"),
        ("/%zz", "/%25zz"),
        ("/%c3%A9", "/%c3%A9"),
        ("/%41", "/%41"),
        ("/%2A", "/%2A"),
        ("/a#b", "/a%23b"),
        ("/i.jpg?size=1&x=@:;,$+!'()", "/i.jpg?size=1&x=@:;,$+!'()"),
        ("/%2*", "/%252*"),
        ("/%€", "/%25%E2%82%AC"),
    ] {
        assert_eq!(Path::parse(text).unwrap().as_str(), expected);
    }
}

#[test]
fn a_refusal_says_what_is_wrong() {
    for (text, expected) in [
        ("", "empty"),
        ("#", "empty"),
        ("index.html", "starts with /"),
        ("*", "starts with /"),
        ("/a*/b", "last character"),
        ("/**", "last character"),
        ("/~user/*", "tilde"),
        ("/%7Euser", "tilde"),
        ("/%7euser", "tilde"),
        ("/a\nb", "control"),
        ("#a,b", "no comma"),
        ("#a b", "visible ASCII"),
        ("#é", "visible ASCII"),
        ("#a*", "no wildcard"),
    ] {
        assert!(problem(text).contains(expected), "{text:?}: {}", problem(text));
    }
    assert!(problem(&format!("/{}", "a".repeat(4_000))).contains("4001 characters"));
    assert!(problem(&format!("/{}", "é".repeat(1_000))).contains("6001 characters when encoded"));
    assert!(problem(&format!("#{}", "a".repeat(257))).contains("257 characters"));
    assert!(problem(&"é".repeat(100_000)).len() < 400);
}

#[test]
fn the_longest_path_and_tag_are_accepted() {
    assert!(Path::parse(&format!("/{}", "a".repeat(3_999))).is_ok());
    assert!(Path::parse(&format!("#{}", "a".repeat(256))).is_ok());
}

#[test]
fn a_set_is_sorted_and_has_nothing_twice() {
    let set = set(&["/b", "/a/*", "#Shop", "/a/x?q=1", "/a/b/*", "/b", "#shop"]);
    assert_eq!(set.to_string(), "#shop /a/* /b");
    assert_eq!((set.len(), set.wildcards(), set.has_tags()), (3, 1, true));
    assert_eq!(serde_json::to_string(&set).unwrap(), r##"["#shop","/a/*","/b"]"##);
}

#[test]
fn everything_covers_paths_and_tags_alike() {
    assert_eq!(set(&["#shop", "/a", "/*"]), PathSet::default());
    assert!(PathSet::default().covers(&set(&["#shop", "/a/*"])));
}

#[test]
fn a_directory_wildcard_does_not_cover_the_directory_itself() {
    assert!(!set(&["/a/*"]).covers(&set(&["/a"])));
    assert!(set(&["/a*"]).covers(&set(&["/a", "/a/*", "/ab"])));
    // '!' sorts before '*': the order of the texts alone would miss this.
    assert_eq!(set(&["/a", "/a!", "/a*"]).to_string(), "/a*");
}

#[test]
fn nothing_named_means_everything() {
    assert_eq!(set(&[]), PathSet::default());
    assert_eq!(serde_json::from_str::<PathSet>("[]").unwrap(), PathSet::default());
    assert_eq!(PathSet::default().to_string(), "/*");
}

#[test]
fn where_tags_mean_nothing_everything_is_purged_instead() {
    assert_eq!(set(&["#shop", "#cart"]).without_tags(), PathSet::default());
    assert_eq!(set(&["#shop", "/a"]).without_tags(), set(&["/a"]));
    assert_eq!(set(&["/a"]).without_tags(), set(&["/a"]));
}

#[test]
fn many_paths_become_the_longest_beginnings_they_have_in_common() {
    let many = ["/shop/a1", "/shop/a2", "/shop/b", "/blog/2026/x", "/blog/2026/y", "/about"];
    for (most, expected) in [
        (6, "/about /blog/2026/x /blog/2026/y /shop/a1 /shop/a2 /shop/b"),
        (5, "/about /blog/2026/* /shop/a1 /shop/a2 /shop/b"),
        (4, "/about /blog/2026/* /shop/a* /shop/b"),
        (3, "/about /blog/2026/* /shop/*"),
        (2, "/* "),
        (1, "/*"),
    ] {
        assert_eq!(set(&many).at_most(most).to_string(), expected.trim_end(), "{most}");
    }
    assert_eq!(set(&["/%C3%A4", "/%C3%A5", "/x"]).at_most(2).to_string(), "/%C3* /x");
    assert_eq!(set(&["/%41", "/%42", "/x"]).at_most(2), PathSet::default(), "no escape is cut in two");
    assert_eq!(set(&["#a", "#b", "/x/1", "/x/2"]).at_most(3).to_string(), "#a #b /x/*");
    assert_eq!(set(&["#a", "#b", "/x"]).at_most(2), PathSet::default(), "tags cannot be put together");
}

#[test]
fn what_is_in_both_is_the_narrower_of_each() {
    let both = |one: &[&str], other: &[&str]| set(one).intersection(&set(other)).map(|both| both.to_string());
    assert_eq!(both(&["/*"], &["/shop/*"]).as_deref(), Some("/shop/*"));
    assert_eq!(both(&["/shop/a", "/blog/*", "#tag"], &["/shop/*"]).as_deref(), Some("/shop/a"));
    assert_eq!(both(&["#tag", "/a"], &["#tag", "/*"]).as_deref(), Some("#tag /a"));
    assert_eq!(both(&["/a"], &["/b*"]), None);
}

#[test]
fn a_stored_path_is_checked_again() {
    assert!(serde_json::from_str::<PathSet>(r#"["/a", "b"]"#).is_err());
}
