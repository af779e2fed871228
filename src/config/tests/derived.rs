//! The name of a group where only the old program's variables are given.

use super::load_with;

#[test]
fn one_worker_for_each_namespace_as_the_old_program_ran_is_a_group_for_each() {
    let old = [("REDIS_HOST", "cache"), ("REMOTE_REDIS_HOSTS", "eu-2")];
    let derived = |more: &[(&str, &str)]| {
        let variables: Vec<_> = old.iter().chain(more).copied().collect();
        load_with(&[], &variables, &[]).unwrap().config.group.derived
    };
    assert_eq!(derived(&[("NAMESPACE", "shop")]).as_deref(), Some("ns-shop"));
    assert_eq!(derived(&[("NAMESPACE", "shop, blog,shop")]).as_deref(), Some("ns-blog.shop"));
    assert_eq!(derived(&[("NAMESPACE", "default")]).as_deref(), Some("ns-default"), "not the name of all others");
    let many: Vec<String> = (0..20).map(|number| format!("team-{number}")).collect();
    let long = derived(&[("NAMESPACE", &many.join(","))]).unwrap();
    assert!(kernel::id::is_key_part(&long) && long.starts_with("ns-"), "{long}");
    let named = ("ALLCLEAR__GROUP__NAME", "default");
    let member = ("ALLCLEAR__GROUP__MEMBER", "eu-1");
    let namespaces = ("ALLCLEAR__WATCH__NAMESPACES", "shop");
    for none in [
        &[][..],
        &[("NAMESPACE", "*")],
        &[namespaces],
        &[("NAMESPACE", "shop"), named],
        &[("NAMESPACE", "shop"), member],
    ] {
        assert_eq!(derived(none), None, "{none:?}");
    }
}
