//! Where Secrets may be sent.

use super::*;

#[test]
fn the_operator_says_where_secrets_may_be_sent() {
    assert!(load_with(&[], &[], &[]).unwrap().config.secrets.hosts.is_empty());
    let file = "[secrets]\nhosts = [\"shop/forge=Git.example.com\", \"shop/forge=git.example.com:8443\", \"a/b=x.example.com\"]";
    let hosts = load_with(&[("c.toml", file)], &[], &[]).unwrap().config.secrets.hosts;
    let of = |secret: &str| hosts[secret].iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(of("shop/forge"), ["git.example.com", "git.example.com:8443"]);
    assert_eq!((of("a/b"), hosts.len()), (vec!["x.example.com".to_owned()], 2));
    for entry in [
        "shop/forge",
        "forge=git.example.com",
        "shop/forge=",
        "shop/forge=*.example.com",
        "shop/forge=https://x.example.com",
    ] {
        let found = problems(&[("c.toml", &format!("[secrets]\nhosts = [\"{entry}\"]"))], &[]);
        assert!(found.len() == 1 && found[0].contains("item 1 is not a Secret and a host"), "{entry}: {found:?}");
    }
}
