//! `proof.*` and `purge.again_*`. What is refused of them is in mistakes.txt.

use super::*;
use proof::look::Again;
use purge::bounds::policy::{self, LooksFrom};

#[test]
fn what_is_said_of_looks_reaches_decisions_and_the_guard() {
    let file = "[proof]\nenabled = true\npaths = [\"/\", \"/shop/?page=2\", \"/\"]\nprivate_hosts = [\"WWW.example.com\", \"x.test\"]\n\
                from = \"every-member\"\n[purge]\nagain_max = 2\nagain_after = \"90s\"\nsample_tags = false\n";
    let config = load_with(&[("c.toml", file)], &[], &[]).unwrap().config;
    let paths = ["/", "/shop/?page=2"].map(|path| path.parse().unwrap()).into();
    let again = Again { max: 2, after_s: Some(90) };
    assert_eq!(config.policy().proof, policy::Proof { enabled: true, paths, again, from: LooksFrom::EveryMember });
    assert!(!config.purge.sample_tags);
    let hosts: Vec<&str> = config.proof.private_hosts.iter().map(String::as_str).collect();
    assert_eq!(hosts, ["www.example.com", "x.test"], "as a page names its host");
}

#[test]
fn the_environment_says_it_too() {
    let variables = [
        ("ALLCLEAR__PROOF__ENABLED", "True"),
        ("ALLCLEAR__PROOF__PATHS", "/, /shop"),
        ("ALLCLEAR__PROOF__PRIVATE_HOSTS", "www.example.com"),
        ("ALLCLEAR__PURGE__AGAIN_MAX", " 3 "),
    ];
    let config = load_with(&[], &variables, &[]).unwrap().config;
    let policy::Proof { enabled, paths, again, from } = config.policy().proof;
    assert_eq!((enabled, paths.len(), again, config.proof.private_hosts.len()), (true, 2, Again::up_to(3), 1));
    assert_eq!((from, config.purge.sample_tags), (LooksFrom::Executor, true));
    for bad in ["4", "-1", "1.0", "many", "256"] {
        let found = problems(&[], &[("ALLCLEAR__PURGE__AGAIN_MAX", bad)]);
        assert!(found.len() == 1 && found[0].ends_with("fix: write a whole number from 0 to 3"), "{bad}: {found:?}");
    }
}

#[test]
fn as_many_hosts_may_be_private_as_one_lists_by_hand() {
    let listed = |many: usize| (0..many).map(|number| format!("h{number}.example.com,")).collect::<String>();
    let name = "ALLCLEAR__PROOF__PRIVATE_HOSTS";
    let config = load_with(&[], &[(name, &listed(32))], &[]).unwrap().config;
    assert_eq!(config.proof.private_hosts.len(), 32);
    assert!(problems(&[], &[(name, &listed(33))])[0].contains("has 33 items; fix: give at most 32"));
}

#[test]
fn routes_are_a_word_among_paths_and_not_beside_tags() {
    let paths = |value: &str| {
        load_with(&[], &[("ALLCLEAR__PURGE__PATHS", value)], &[]).map(|loaded| loaded.config.policy().paths.to_string())
    };
    assert_eq!(paths("routes").unwrap(), "routes");
    assert_eq!(paths("/api/*,routes").unwrap(), "routes /api/*");
    let refused = problems(&[], &[("ALLCLEAR__PURGE__PATHS", "routes,#shop")]);
    assert!(refused.len() == 1 && refused[0].contains("\"routes\" and cache tags exclude each other"), "{refused:?}");
}
