//! What is said of proxies in the environment.

use expect_test::expect;

use super::{lines, warnings};

/// Which webhooks the proxy of the environment would lead to, and does not.
#[test]
fn a_proxy_of_the_environment_that_is_not_used_for_webhooks_is_said() {
    let hook = |url: &str| format!(r#"{{"name": "web", "url": "{url}", "method": "POST"}}"#);
    let hooks = ["https://ci.example.com/x", "http://tools.corp.svc/x", "https://10.2.3.4/x"].map(hook).join(", ");
    let hooks = format!(r#"{{"webhooks": [{hooks}]}}"#);
    let warned = |variables: &[(&str, &str)]| {
        let variables: Vec<(&str, &str)> = variables.iter().copied().chain([("WEBHOOKS_CONFIG", "h.json")]).collect();
        warnings(&[("h.json", &hooks)], &variables).join("\n")
    };
    let proxy = "http://us:word@proxy:3128";
    let all = ("HTTPS_PROXY", proxy);
    let some =
        [vec![all], vec![("http_proxy", proxy)], vec![("ALL_PROXY", proxy)], vec![all, ("no_proxy", "10.0.0.0/8")]];
    expect![[r#"
        environment HTTPS_PROXY: webhooks.proxy: is not used for webhooks: 2 are called directly; if only a proxy leads there, set webhooks.proxy; if this is meant, name their hosts in NO_PROXY
        environment http_proxy: webhooks.proxy: is not used for webhooks: 1 is called directly; if only a proxy leads there, set webhooks.proxy; if this is meant, name their hosts in NO_PROXY
        environment ALL_PROXY: webhooks.proxy: is not used for webhooks: 3 are called directly; if only a proxy leads there, set webhooks.proxy; if this is meant, name their hosts in NO_PROXY
        environment HTTPS_PROXY: webhooks.proxy: is not used for webhooks: 1 is called directly; if only a proxy leads there, set webhooks.proxy; if this is meant, name their hosts in NO_PROXY
    "#]].assert_eq(&lines(some.map(|given| warned(&given))));
    assert_eq!(warned(&[("HTTPS_PROXY", proxy), ("NO_PROXY", "10.0.0.0/8, .example.com")]), "");
    assert_eq!(warned(&[("HTTPS_PROXY", " "), ("NO_PROXY", "*")]), "");
    let ours = ("ALLCLEAR__WEBHOOKS__PROXY", "http://proxy:3128");
    assert_eq!(warned(&[("HTTPS_PROXY", proxy), ours, ("ALLCLEAR__WEBHOOKS__PROXY_JUDGES", "true")]), "");
    assert_eq!(warned(&[]), "");
}

#[test]
fn a_proxy_of_the_environment_that_is_not_used_for_git_is_said_where_git_is_used() {
    let proxy = ("HTTPS_PROXY", "http://proxy:3128");
    let said =
        warnings(&[], &[proxy, ("ALLCLEAR__REPO__ENABLED", "on"), ("ALLCLEAR__REPO__STEP_IMAGE", "r.example.com/a:1")]);
    expect![[r#"
        environment HTTPS_PROXY: repo.enabled: is not used for git hosts and forges; the pod must reach them itself (docs/install.md, Behind a proxy)
    "#]].assert_eq(&lines(said));
    assert_eq!(warnings(&[], &[proxy]), [""; 0]);
}
