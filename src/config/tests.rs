//! What is given in layers, and what comes out: all of `load`.

use super::*;
use expect_test::{expect, expect_file};

mod caches;
mod custom;
mod derived;
mod looks;
mod properties;
mod proxies;
mod secrets;
mod slips;
mod traces;

/// Loads with some files (the first is `--config`), variables and flags.
fn load_with(files: &[(&str, &str)], variables: &[(&str, &str)], flags: &[(&str, &str)]) -> Result<Loaded, Invalid> {
    let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let files: BTreeMap<String, String> = map(files);
    let read = |path: &Path| files.get(path.to_str().unwrap()).cloned().ok_or(io::ErrorKind::NotFound.into());
    let file = files.contains_key("c.toml").then(|| PathBuf::from("c.toml"));
    let (environment, flags) = (map(variables), map(flags));
    load(&Inputs { file, environment, flags, service_account_namespace: Some("infra\n".to_owned()), read: &read })
}

fn problems(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Vec<String> {
    let invalid = load_with(files, variables, &[]).expect_err("this must be refused");
    invalid.problems.iter().map(|problem| problem.to_string().replace("\n    fix", "; fix")).collect()
}

/// All problems of each of these files.
fn refused(files: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let invalid = |file: &str| load_with(&[("c.toml", file)], &[], &[]).expect_err("this must be refused");
    let problems = files.into_iter().flat_map(|file| invalid(file.as_ref()).problems);
    problems.map(|problem| format!("{problem}\n")).collect()
}

fn warnings(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Vec<String> {
    load_with(files, variables, &[]).unwrap().warnings.iter().map(ToString::to_string).collect()
}

/// Each on a line of its own.
fn lines(found: impl IntoIterator<Item = String>) -> String {
    found.into_iter().map(|one| one + "\n").collect()
}

fn place_of(loaded: &Loaded, key: &str) -> String {
    loaded.effective.settings.iter().find(|setting| setting.key == key).unwrap().place.layer()
}

#[test]
fn the_defaults_are_those_that_were_decided() {
    let loaded = load_with(&[], &[], &[]).unwrap();
    assert_eq!(loaded.warnings, []);
    let config = loaded.config;
    assert_eq!(config.policy(), Policy::default());
    let seconds = |duration: Duration| duration.as_secs();
    assert_eq!((seconds(config.group.timeout), seconds(config.purge.debounce)), (1800, 2));
    assert_eq!((seconds(config.purge.completion_timeout), config.purge.creations_per_second), (900, 0.5));
    assert_eq!(config.pace(), Pace::default());
    assert_eq!((config.ledger.backend, config.ledger.namespace.as_deref()), (LedgerBackend::Kubernetes, Some("infra")));
    assert_eq!(config.watch.namespaces, Namespaces::AllOrOwn);
    assert!(!config.is_grouped() && !config.dry_run && config.redis.url.is_none());
}

#[test]
fn the_examples_are_valid() {
    let example = include_str!("../../configs/example.toml");
    let hooks = include_str!("../../configs/webhooks.json");
    let path = ("WEBHOOKS_CONFIG", "/etc/allclear/webhooks.json");
    let loaded = load_with(&[("c.toml", example), (path.1, hooks)], &[path], &[]).unwrap();
    assert_eq!(loaded.warnings, []);
    assert!(!loaded.config.is_grouped(), "nobody is in a group by copying a file");
    assert_eq!(loaded.config.webhooks.hooks.len(), 2);
    let installed = load_with(&[("c.toml", include_str!("../../deploy/base/config.toml"))], &[], &[]).unwrap();
    assert_eq!(installed.warnings, []);
}

#[test]
fn later_layers_win_key_by_key() {
    let file = "[purge]\ndebounce = \"1s\"\npoll_first = \"1s\"\ncompletion_timeout = \"1s\"\n";
    let variables = [("ALLCLEAR__PURGE__DEBOUNCE", "2s"), ("ALLCLEAR__PURGE__POLL_FIRST", "2s")];
    let loaded = load_with(&[("c.toml", file)], &variables, &[("purge.debounce", "3s")]).unwrap();
    let purge = &loaded.config.purge;
    assert_eq!((purge.debounce, purge.poll_first), (Duration::from_secs(3), Duration::from_secs(2)));
    assert_eq!(purge.completion_timeout, Duration::from_secs(1));
    assert_eq!(place_of(&loaded, "purge.debounce"), "flag --purge-debounce");
    assert_eq!(place_of(&loaded, "purge.poll_first"), "environment ALLCLEAR__PURGE__POLL_FIRST");
    assert_eq!(place_of(&loaded, "purge.completion_timeout"), "file c.toml line 4");
    assert_eq!(place_of(&loaded, "purge.paths"), "default");
}

#[test]
fn the_old_names_work() {
    let variables = [
        ("NAMESPACE", "shop, blog"),
        ("REDIS_HOST", "cache"),
        ("REDIS_PORT", "7000"),
        ("REMOTE_REDIS_HOSTS", " eu-1 , eu-2:6380,eu-3__7001,rediss://u:p@eu-4/1, Cache:7000"),
        ("LOGLEVEL", "WARNING"),
    ];
    let Loaded { config, warnings, .. } = load_with(&[], &variables, &[]).unwrap();
    let names = ["shop", "blog"].map(str::to_owned);
    assert_eq!(config.watch.namespaces, Namespaces::Listed(BTreeSet::from(names)));
    assert_eq!(config.redis.url.unwrap().expose(), "redis://cache:7000");
    let remotes: Vec<&str> = config.group.remotes.iter().map(RedisAddress::expose).collect();
    let expected = ["redis://eu-1:6379", "redis://eu-2:6380", "redis://eu-3:7001", "rediss://u:p@eu-4:6379/1"];
    assert_eq!(remotes, expected);
    assert_eq!(config.log.level, "warn");
    // The old program knew no key, so there is nothing to refuse.
    let keys: Vec<&str> = warnings.iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(keys, ["group.key_file"]);
    assert_eq!(load_with(&[], &[("NAMESPACE", "*")], &[]).unwrap().config.watch.namespaces, Namespaces::All);
    assert!(!load_with(&[], &[("REMOTE_REDIS_HOSTS", " ")], &[]).unwrap().config.is_grouped());
}

#[test]
fn an_old_name_that_differs_from_the_new_one_is_told() {
    let variables = [("LOGLEVEL", "debug"), ("ALLCLEAR__LOG__LEVEL", "info")];
    let wins = "is given twice and differs: environment ALLCLEAR__LOG__LEVEL wins, environment LOGLEVEL is ignored";
    assert_eq!(warnings(&[], &variables), [format!("environment LOGLEVEL: log.level: {wins}")]);
    assert_eq!(load_with(&[], &variables, &[]).unwrap().config.log.level, "info");
    let same = [("NAMESPACE", "a, b"), ("ALLCLEAR__WATCH__NAMESPACES", "a,b")];
    assert!(warnings(&[], &same).is_empty());
}

#[test]
fn what_kubernetes_sets_for_a_service_called_redis_is_not_a_port() {
    let variables = [("REDIS_HOST", "cache"), ("REDIS_PORT", "tcp://10.96.0.7:6379")];
    expect![[r#"
        environment REDIS_PORT: redis.url: REDIS_PORT is ignored: it was set by Kubernetes for a Service called redis (enableServiceLinks: false stops that)
    "#]].assert_eq(&lines(warnings(&[], &variables)));
    let config = load_with(&[], &variables, &[]).unwrap().config;
    assert_eq!(config.redis.url.unwrap().expose(), "redis://cache:6379");
    // No setting asks for a Redis, so there is nothing to warn of.
    assert!(warnings(&[], &variables[1..]).is_empty());
}

// Goal: a Service of our namespace cannot keep us from starting by its name. What Kubernetes sets for Services called
// allclear, allclear--x and allclear--x-service, with every kind of port.
// Faults: T17
#[test]
fn links_to_a_service_whose_name_begins_like_ours_are_passed_over_and_told() {
    let links = [
        ("ALLCLEAR__X_SERVICE_HOST", "10.96.0.7"),
        ("ALLCLEAR__X_SERVICE_PORT", "443"),
        ("ALLCLEAR__X_SERVICE_PORT_HTTP_WEB", "443"),
        ("ALLCLEAR__X_PORT", "tcp://10.96.0.7:443"),
        ("ALLCLEAR__X_PORT_443_TCP", "tcp://10.96.0.7:443"),
        ("ALLCLEAR__X_PORT_443_TCP_PROTO", "tcp"),
        ("ALLCLEAR__X_PORT_443_TCP_PORT", "443"),
        ("ALLCLEAR__X_PORT_443_TCP_ADDR", "10.96.0.7"),
        ("ALLCLEAR__X_PORT_53_UDP", "udp://[fd00::7]:53"),
        ("ALLCLEAR__X_PORT_53_UDP_ADDR", "fd00::7"),
        ("ALLCLEAR__X_PORT_132_SCTP_PROTO", "sctp"),
        ("ALLCLEAR__X_SERVICE_PORT_80_TCP", "tcp://10.96.0.8:80"),
        ("ALLCLEAR__X__Y_SERVICE_SERVICE_PORT", "80"),
    ];
    let own = [("ALLCLEAR_SERVICE_HOST", "10.96.0.9"), ("ALLCLEAR_PORT", "tcp://10.96.0.9:8080")];
    assert_eq!(warnings(&[], &own), [""; 0], "of no concern");
    let told = warnings(&[], &links);
    assert_eq!(told.len(), links.len(), "{told:#?}");
    assert!(told.iter().all(|told| told.contains("enableServiceLinks: false")), "{told:#?}");
    // The same names with what no link has, and names that no link has, are mistakes of the operator's.
    for (name, value) in [
        ("ALLCLEAR__X_SERVICE_HOST", "redis.example.com"),
        ("ALLCLEAR__X_SERVICE_PORT", "0"),
        ("ALLCLEAR__REDIS_PORT", "6379"),
        ("ALLCLEAR__X_PORT", "redis://10.96.0.7:443"),
        ("ALLCLEAR__X_PORT_443_TCP", "443"),
        ("ALLCLEAR__X_PORT_443_TCP_NAME", "10.96.0.7"),
        ("ALLCLEAR__PURGE__PORT_TCP", "tcp"),
        ("ALLCLEAR__ZEBRA__QUUX", "10.96.0.7"),
    ] {
        let found = problems(&[], &[(name, value)]);
        assert!(found.len() == 1 && found[0].contains("is not a key"), "{name}: {found:?}");
    }
}

// Faults: T14
#[test]
fn the_page_is_on_loopback_and_whoever_shows_it_to_the_cluster_is_told_what_that_means() {
    let config = load_with(&[], &[], &[]).unwrap().config;
    let (listen, page) = ("0.0.0.0:8080".parse().unwrap(), "127.0.0.1:8081".parse().unwrap());
    assert_eq!(config.http, Http { listen, page, fresh: None });
    for loopback in ["127.0.0.3:80", "[::1]:8081", "[::ffff:127.0.0.1]:8081"] {
        assert_eq!(warnings(&[], &[("ALLCLEAR__HTTP__PAGE", loopback)]), [""; 0]);
    }
    for open in ["0.0.0.0:8081", "[::]:8081", "10.0.0.7:8080", "[::ffff:10.0.0.7]:8081"] {
        let pod = if open.ends_with("8080") { "10.0.0.8:8080" } else { "0.0.0.0:8080" };
        let told = warnings(&[], &[("ALLCLEAR__HTTP__PAGE", open), ("ALLCLEAR__HTTP__LISTEN", pod)]);
        assert!(told.len() == 1 && told[0].contains("every pod that reaches it can read"), "{open}: {told:?}");
    }
}

#[test]
fn an_own_port_of_the_host_wins_over_redis_port() {
    let variables = [("REDIS_HOST", "redis://:pw@cache:7000/1"), ("REDIS_PORT", "6379")];
    expect![[r#"
        environment REDIS_PORT: redis.url: REDIS_HOST has a port of its own, which wins over REDIS_PORT
    "#]]
    .assert_eq(&lines(warnings(&[], &variables)));
    let config = load_with(&[], &variables, &[]).unwrap().config;
    assert_eq!(config.redis.url.unwrap().expose(), "redis://:pw@cache:7000/1");
}

// Faults: X1
#[test]
fn mistakes_are_refused_with_place_and_fix() {
    let mistakes = [
        "dry_run = 1",
        "dry_run = \"true\"",
        "[purge]\npaths = 5",
        "[purge]\npaths = [5]",
        "[purge]\npaths = [\"/a\", \"images/*\"]",
        "[rollout]\ntimeout = 900",
        "[rollout]\ntimeout = \"0s\"",
        "[purge]\ncreations_per_second = 0",
        "[group]\npolicy = \"wiat\"",
        "[group]\nmember = \"eu:1\"",
        "[watch]\nnamespaces = [\"*\", \"shop\"]",
        "[http]\nlisten = \":8080\"",
        "[http]\npage = \"127.0.0.1:8080\"",
        "[cloudfront]\nendpoint = \"moto:5000\"",
        "[group]\nremotes = [\"eu-2\"]",
        "[redis]\nurl = \"redis://:p@ss@cache:port\"",
        "[pipeline]\nenabled = true",
        "[pipeline]\ngroups = []",
        "[pipeline]\ngroups = [\"allclear.dev/v1alpha1\"]",
        "[pipeline]\ngroups = [\"a.b\", \"a.b\"]",
        "[git]\nprivate_hosts = [\"https://git.example.com\"]",
        "[proof]\nenabled = \"true\"",
        "[proof]\npaths = []",
        "[proof]\npaths = [\"/\", \"/shop/*\"]",
        "[proof]\npaths = [\"shop\"]",
        "[proof]\npaths = [\"/1\", \"/2\", \"/3\", \"/4\", \"/5\"]",
        "[proof]\nprivate_hosts = [\"*.example.com\"]",
        "[proof]\nprivate_host = [\"www.example.com\"]",
        "[prof]\nenabled = true",
        "[purge]\nagain_max = 4",
        "[purge]\nagain_max = 1.5",
        "[purge]\nagain_max = \"1\"",
    ];
    expect_file!["tests/mistakes.txt"].assert_eq(
        &mistakes
            .map(|file| {
                format!(
                    "{file}
{}
",
                    refused([file])
                )
            })
            .concat(),
    );
}

// Faults: X1
#[test]
fn all_layers_are_judged_at_once() {
    let file = "[purge]\ndebonce = \"1s\"\n[log]\nformat = \"xml\"\n";
    let variables =
        [("ALLCLEAR__PURGE__PATH", "/*"), ("allclear__log__level", "info"), ("WEBHOOKS_CONFIG", "/missing")];
    let found = problems(&[("c.toml", file)], &variables);
    let expected = [
        "c.toml:2:1: purge.debonce: is not a key; fix: did you mean purge.debounce?",
        "c.toml:4:10: log.format: is not a choice; fix: write json or text",
        "environment ALLCLEAR__PURGE__PATH: purge.path: is not a key; fix: did you mean ALLCLEAR__PURGE__PATHS?",
        "environment WEBHOOKS_CONFIG: webhooks.file: names a file that cannot be read: there is no such file; \
         fix: mount the file there, or leave webhooks.file (WEBHOOKS_CONFIG) empty",
        "environment allclear__log__level: allclear__log__level is not in capitals; fix: write it as ALLCLEAR__LOG__LEVEL",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_file_that_was_named_must_exist() {
    let read = |_: &Path| Err(io::ErrorKind::PermissionDenied.into());
    let inputs = |file| Inputs {
        file,
        environment: BTreeMap::new(),
        flags: BTreeMap::new(),
        service_account_namespace: None,
        read: &read,
    };
    let found = load(&inputs(Some(PathBuf::from("c.toml")))).unwrap_err().to_string();
    assert_eq!(
        found,
        "the configuration has a problem\n  c.toml: cannot be read: permission denied\n    \
         fix: name an existing file with --config"
    );
    assert!(load(&inputs(None)).is_err(), "a default file that exists must be readable");
}

#[test]
fn a_ledger_in_redis_is_refused_with_what_to_write_instead() {
    let found = problems(&[], &[("ALLCLEAR__LEDGER__BACKEND", "redis"), ("REDIS_HOST", "cache")]);
    expect![[r#"
        environment ALLCLEAR__LEDGER__BACKEND: ledger.backend: is no ledger any more: a Redis that lost its data forgot what was purged and what was under way; fix: write kubernetes, or leave it out; redis.url (REDIS_HOST) still gets the current tags
    "#]].assert_eq(&lines(found));
}

#[test]
fn a_dry_run_keeps_its_records_in_memory() {
    let config = load_with(&[], &[], &[("dry_run", "true")]).unwrap().config;
    assert_eq!((config.ledger.backend, config.ledger_backend()), (LedgerBackend::Kubernetes, LedgerBackend::Memory));
}

#[test]
fn a_list_of_only_ourselves_means_no_others_and_looks_for_them() {
    let variables = [("REDIS_HOST", "cache"), ("REMOTE_REDIS_HOSTS", "cache:6379,redis://CACHE/0")];
    expect![[r#"
        environment REMOTE_REDIS_HOSTS: group.remotes: names a server twice; it is counted once
        environment REMOTE_REDIS_HOSTS: group.remotes: names only our own Redis: this cluster works alone, and purges nothing while another one reports there
    "#]].assert_eq(&lines(warnings(&[], &variables)));
    let config = load_with(&[], &variables, &[]).unwrap().config;
    assert!(
        config.is_grouped() && !config.means_others(),
        "another one may report there, and until then none is meant"
    );
}

#[test]
fn another_database_of_our_own_server_is_that_of_another_member() {
    let variables =
        [("REDIS_HOST", "redis://cache/0"), ("REMOTE_REDIS_HOSTS", "redis://cache/1, redis://cache/1, cache")];
    let loaded = load_with(&[], &variables, &[]).unwrap();
    let remotes: Vec<&str> = loaded.config.group.remotes.iter().map(RedisAddress::expose).collect();
    assert_eq!((loaded.config.is_grouped(), remotes), (true, vec!["redis://cache:6379/1"]));
    assert!(warnings(&[], &variables).iter().any(|warning| warning.contains("names a server twice")));
}

#[test]
fn too_many_paths_are_a_warning() {
    let paths = |count: usize| (0..count).map(|index| format!("/{index}")).collect::<Vec<_>>().join(",");
    assert_eq!(warnings(&[], &[("ALLCLEAR__PURGE__PATHS", &paths(10))]), Vec::<String>::new());
    expect![[r#"
        environment ALLCLEAR__PURGE__PATHS: purge.paths: has 11 paths; an invalidation gets 10 at most, so those with the longest beginnings in common are purged by these beginnings
    "#]].assert_eq(&lines(warnings(&[], &[("ALLCLEAR__PURGE__PATHS", &paths(11))])));
}

#[test]
fn the_namespace_of_the_pod_yields_to_the_file() {
    let pod = ("POD_NAMESPACE", "tools");
    let loaded = load_with(&[], &[pod], &[]).unwrap();
    assert_eq!(
        (loaded.config.ledger.namespace.as_deref(), place_of(&loaded, "ledger.namespace").as_str()),
        (Some("tools"), "environment POD_NAMESPACE")
    );
    let loaded = load_with(&[("c.toml", "[ledger]\nnamespace = \"mine\"")], &[pod], &[]).unwrap();
    assert_eq!(loaded.config.ledger.namespace.as_deref(), Some("mine"));
}

#[test]
fn a_level_may_be_a_filter_but_not_any_word() {
    let level = |text| load_with(&[], &[("LOGLEVEL", text)], &[]).map(|loaded| loaded.config.log.level);
    assert_eq!(level("DEBUG").unwrap(), "debug");
    assert_eq!(level("info,allclear=debug").unwrap(), "info,allclear=debug");
    for text in ["debgu", "verbose", "allclear=loud", "7"] {
        assert!(level(text).is_err(), "{text}");
    }
}

#[test]
fn the_names_of_the_members_are_checked_against_each_other_and_our_own() {
    let group = |keys: &str| format!("[redis]\nurl = \"a\"\n[group]\nremotes = [\"b\"]\n{keys}");
    let keys = [
        "member = \"eu-1\"\nmembers = [\"eu-2\", \"us-1\"]",
        "members = [\"eu-1\"]",
        "members = [\"eu-1\", \"eu-1\"]",
        "takeover = \"10ms\"",
    ];
    expect![[r#"
        c.toml:6:11: group.members: does not name this member
            fix: add group.member to it, or correct group.member
        c.toml:5:11: group.members: names one member
            fix: name all members of the group, or leave it empty
        c.toml:5:11: group.members: names a member twice
            fix: write each name once; two clusters need two names
        c.toml:5:12: group.takeover = "10ms": is not in range
            fix: write a duration of 100ms to 5m
    "#]]
    .assert_eq(&refused(keys.map(group)));
    let config = load_with(&[("c.toml", &group("members = [\"eu-2\", \"eu-1\"]"))], &[], &[]).unwrap().config;
    assert_eq!(config.group.members.into_iter().collect::<Vec<_>>(), ["eu-1", "eu-2"]);
}

#[test]
fn more_members_than_servers_are_refused() {
    let members = "\"eu-1\", \"eu-2\", \"us-1\", \"us-2\"";
    let file = format!("[redis]\nurl = \"a\"\n[group]\nremotes = [\"b\", \"c\", \"a\"]\nmembers = [{members}]");
    expect![[r#"
        c.toml:5:11: group.members: names 4 members, and 3 different Redis servers are configured: redis.url and those in group.remotes; each member has one of its own
            fix: add the other members' Redis to group.remotes (REMOTE_REDIS_HOSTS), or take the members that have retired out of group.members
    "#]].assert_eq(&refused([file]));
    let fits = "[redis]\nurl = \"a\"\n[group]\nremotes = [\"b\", \"c\"]\nmembers = [\"eu-1\", \"eu-2\"]";
    assert!(load_with(&[("c.toml", fits)], &[], &[]).is_ok(), "one server more may be another address of one of them");
}

#[test]
fn a_group_without_a_key_and_members_without_a_group_are_warned_about() {
    let files = [
        "[redis]\nurl = \"a\"\n[group]\nremotes = [\"b\"]",
        "[group]\nrepository_prefixes = [\"mirror/\"]",
        "[group]\nmembers = [\"eu-1\", \"eu-2\"]",
    ];
    expect![[r#"
        default: group.key_file: is not set, so the members' records are not signed: a program that can write to one of their Redis servers can cause a purge, or prevent one; set group.key_file in every member, or group.unsigned = true if that is meant
        c.toml:2:23: group.repository_prefixes: has no effect: between members an image is compared by the last segment of its repository and by its tag; remove it
        c.toml:2:11: group.members: names 2 members, and group.remotes (REMOTE_REDIS_HOSTS) names the Redis of no other one: nothing is purged before it does; for a cluster that works alone, leave both empty
    "#]].assert_eq(&lines(files.into_iter().flat_map(|file| warnings(&[("c.toml", file)], &[]))));
}

#[test]
fn the_key_of_a_group_is_read_from_its_file() {
    let key = [("ALLCLEAR__GROUP__KEY_FILE", "/key")];
    let good = load_with(&[("/key", "0123456789abcdef0123456789abcdef\n")], &key, &[]).unwrap().config;
    assert_eq!(good.group.keys[0].expose(), b"0123456789abcdef0123456789abcdef");
    let said = [problems(&[("/key", "s3cret")], &key), problems(&[], &key)].concat();
    expect![[r#"
        environment ALLCLEAR__GROUP__KEY_FILE: group.key_file: names a file with a key of 6 bytes; fix: write at least 32 random letters and digits into it, each key on one line
        environment ALLCLEAR__GROUP__KEY_FILE: group.key_file: names a file that cannot be read: there is no such file; fix: mount the key there, or leave group.key_file empty
    "#]].assert_eq(&lines(said));
}

#[test]
fn what_is_shown_has_the_same_type_whatever_the_layer() {
    let flags = [("dry_run", "TRUE"), ("purge.creations_per_second", "0.25"), ("watch.namespaces", "a, b")];
    let loaded = load_with(&[], &[], &flags).unwrap();
    let shown = |key| &loaded.effective.settings.iter().find(|setting| setting.key == key).unwrap().value;
    assert_eq!(*shown("dry_run"), serde_json::json!(true));
    assert_eq!(*shown("purge.creations_per_second"), serde_json::json!(0.25));
    assert_eq!(*shown("watch.namespaces"), serde_json::json!(["a", "b"]));
}

#[test]
fn a_key_of_any_text_is_shown_on_one_line() {
    let file = format!("\"a\\u001b[2J\\n{}\" = 1", "x".repeat(1000));
    let found = problems(&[("c.toml", &file)], &[("ALLCLEAR__\u{1b}", "x")]);
    assert!(found.len() == 2 && found.iter().all(|problem| problem.len() < 300), "{found:?}");
    assert!(!found.concat().contains(['\u{1b}', '\n']), "{found:?}");
}

#[test]
fn pipelines_are_followed_where_there_are_any_unless_configured_otherwise() {
    let config = load_with(&[], &[], &[]).unwrap().config;
    let groups = vec!["allclear.dev".to_owned()];
    assert_eq!(config.pipeline, Pipeline { enabled: Enabled::Auto, groups, cross_namespace: true, freezes: true });
    assert!(config.git.private_hosts.is_empty() && config.http.fresh.is_none());
    let own =
        |more: &str| load_with(&[("c.toml", &format!("[tenants]\ndefault = \"own\"\n{more}"))], &[], &[]).unwrap();
    assert!(!own("").config.pipeline.cross_namespace, "each namespace to its own");
    assert!(own("[pipeline]\ncross_namespace = true\n").config.pipeline.cross_namespace, "unless the operator says so");
    let file = "[pipeline]\nenabled = \"ON\"\ngroups = [\"allclear.dev\", \"pipelines.weave.works\"]\n\
                [git]\nprivate_hosts = [\"Git.example.com\", \"10.0.0.7\", \"fd00::7\"]\n";
    let config = load_with(&[("c.toml", file)], &[], &[]).unwrap().config;
    assert_eq!((config.pipeline.enabled, config.pipeline.groups.len()), (Enabled::On, 2));
    let hosts: Vec<&str> = config.git.private_hosts.iter().map(String::as_str).collect();
    assert_eq!(hosts, ["10.0.0.7", "[fd00::7]", "git.example.com"]);
    for host in ["git.example.com:443", "*.example.com", "git example"] {
        let found = problems(&[("c.toml", &format!("[git]\nprivate_hosts = [\"{host}\"]"))], &[]);
        assert!(found.len() == 1 && found[0].contains("item 1 is not a host"), "{host}: {found:?}");
    }
}

#[test]
fn the_token_for_asking_after_edges_is_read_from_its_file_and_never_shown() {
    let file = [("ALLCLEAR__HTTP__FRESH_TOKEN_FILE", "/token")];
    let loaded = load_with(&[("/token", "hunter2hunter2hunter2hunter2hunter2\n")], &file, &[]).unwrap();
    let token = loaded.config.http.fresh.clone().unwrap();
    assert_eq!(token.expose(), "hunter2hunter2hunter2hunter2hunter2");
    assert!(!format!("{:?}", loaded.config.http).contains("hunter2"));
    assert!(!loaded.effective.table().contains("hunter2"));
    for bad in ["hunter2", "", "hunter2hunter2hunter2 hunter2hunter2", "hunter2hunter2hunter2hunter2\nhunter2hunter2"] {
        let found = problems(&[("/token", bad)], &file);
        assert!(found[0].contains("names a file that holds no token") && !found[0].contains("hunter2"), "{found:?}");
    }
    assert!(problems(&[], &file)[0].contains("cannot be read: there is no such file"));
}

#[test]
fn requests_of_other_programs_have_a_port_of_their_own_and_keys_that_are_never_shown() {
    assert_eq!(load_with(&[], &[], &[]).unwrap().config.hooks.listen, None);
    let settings = "[hooks]\nlisten = \"0.0.0.0:8082\"\nkey_file = \"/keys\"\ntrusted_proxies = [\"10.0.0.0/8\"]";
    let keys = "hunter2hunter2hunter2\n\n  hunter3hunter3hunter3\r\n";
    let loaded = load_with(&[("c.toml", settings), ("/keys", keys)], &[], &[]).unwrap();
    let exposed: Vec<&str> = loaded.config.hooks.keys.iter().map(|key| key.expose().as_str()).collect();
    assert_eq!(exposed, ["hunter2hunter2hunter2", "hunter3hunter3hunter3"]);
    assert!(!format!("{:?}{}", loaded.config.hooks, loaded.effective.table()).contains("hunter"));
    for bad in ["hunter2", "hunter2hunter2 hunter2", "hunter2hunter2hunter2\nhunter3", ""] {
        let found = problems(&[("c.toml", settings), ("/keys", bad)], &[]);
        assert!(found.len() == 1 && found[0].contains("hooks.key_file") && !found[0].contains("hunter"), "{found:?}");
    }
    for taken in ["127.0.0.1:8081", "0.0.0.0:8080"] {
        let found = problems(&[], &[("ALLCLEAR__HOOKS__LISTEN", taken)]);
        assert!(found[0].contains("takes the port of http.listen or of http.page"), "{found:?}");
    }
    let open = "[hooks]\nlisten = \"0.0.0.0:8082\"\nallow_unsigned = true\nempty_approvals = true\n[pipeline]\nenabled = \"off\"";
    assert_eq!(load_with(&[("c.toml", open)], &[], &[]).unwrap().warnings.len(), 3);
}
