//! What is given in layers, and what comes out: all of `load`.

use super::*;

mod derived;
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

fn warnings(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Vec<String> {
    load_with(files, variables, &[]).unwrap().warnings.iter().map(ToString::to_string).collect()
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
    let found = warnings(&[], &variables);
    assert!(found.len() == 1 && found[0].contains("enableServiceLinks"), "{found:?}");
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
    assert!(warnings(&[], &variables)[0].contains("wins over REDIS_PORT"));
    let config = load_with(&[], &variables, &[]).unwrap().config;
    assert_eq!(config.redis.url.unwrap().expose(), "redis://:pw@cache:7000/1");
}

// Fault row X1: a table of mistakes; each is refused with its place and a fix.
// Faults: X1
#[test]
fn mistakes_are_refused_with_place_and_fix() {
    let one = |text: &str, expected: &str| assert_eq!(problems(&[("c.toml", text)], &[]), [expected], "{text}");
    one("dry_run = 1", "c.toml:1:11: dry_run: is a number; fix: write true or false, without quotes");
    one("dry_run = \"true\"", "c.toml:1:11: dry_run: is a text; fix: write true or false, without quotes");
    one("[purge]\npaths = 5", "c.toml:2:9: purge.paths: is a number; fix: write a list of texts in quotes");
    one(
        "[purge]\npaths = [5]",
        "c.toml:2:9: purge.paths: has an item that is not a text; fix: put every item in quotes",
    );
    one(
        "[purge]\npaths = [\"/a\", \"images/*\"]",
        "c.toml:2:9: purge.paths: item 2 cannot be purged: a path starts with / and a cache tag with #; \
         fix: write paths such as /*, /images/* or /index.html, and cache tags such as #product-7",
    );
    one(
        "[rollout]\ntimeout = 900",
        "c.toml:2:11: rollout.timeout = \"900\": has no unit; fix: write a number and a unit, such as 15m, 1h 30m or 500ms",
    );
    one(
        "[rollout]\ntimeout = \"0s\"",
        "c.toml:2:11: rollout.timeout = \"0s\": is not in range; fix: write a duration of 1s to 1day",
    );
    one(
        "[purge]\ncreations_per_second = 0",
        "c.toml:2:24: purge.creations_per_second = \"0\": is not in range; fix: write a number from 0.01 to 100",
    );
    one(
        "[group]\npolicy = \"wiat\"",
        "c.toml:2:10: group.policy: is not a choice; fix: did you mean wait? Possible are wait or skip",
    );
    one(
        "[group]\nmember = \"eu:1\"",
        "c.toml:2:10: group.member: is not a name; fix: write letters, digits, hyphens, underscores and dots, 63 at most",
    );
    one(
        "[watch]\nnamespaces = [\"*\", \"shop\"]",
        "c.toml:2:14: watch.namespaces: has * beside names; fix: write * alone for all namespaces, or leave it out",
    );
    one(
        "[http]\nlisten = \":8080\"",
        "c.toml:2:10: http.listen: is not an address with a port; \
         fix: write an IP address and a port, such as 0.0.0.0:8080 or [::]:8080",
    );
    one(
        "[http]\npage = \"127.0.0.1:8080\"",
        "c.toml:2:8: http.page: takes the port of http.listen: probes and the page have places of their own, so that neither \
         takes the other's; fix: give it another port, such as 127.0.0.1:8081",
    );
    one(
        "[cloudfront]\nendpoint = \"moto:5000\"",
        "c.toml:2:12: cloudfront.endpoint: is not an http or https URL; \
         fix: write an absolute URL such as https://ci.example.com/purged",
    );
    one(
        "[group]\nremotes = [\"eu-2\"]",
        "c.toml:2:11: group.remotes: is set, but our own Redis is not; \
         fix: set redis.url (REDIS_HOST) to the Redis of this cluster, or leave group.remotes empty",
    );
    one(
        "[redis]\nurl = \"redis://:p@ss@cache:port\"",
        "c.toml:2:7: redis.url: is not a URL: invalid port number; \
         fix: write redis://host:port/0, or rediss:// for TLS; percent-encode special characters of the password",
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
    assert!(found.len() == 1 && found[0].contains("ledger.backend: is no ledger any more"), "{found:?}");
    assert!(
        found[0]
            .ends_with("fix: write kubernetes, or leave it out; redis.url (REDIS_HOST) still gets the current tags")
    );
}

#[test]
fn a_dry_run_keeps_its_records_in_memory() {
    let config = load_with(&[], &[], &[("dry_run", "true")]).unwrap().config;
    assert_eq!((config.ledger.backend, config.ledger_backend()), (LedgerBackend::Kubernetes, LedgerBackend::Memory));
}

#[test]
fn a_list_of_only_ourselves_means_no_others_and_looks_for_them() {
    let variables = [("REDIS_HOST", "cache"), ("REMOTE_REDIS_HOSTS", "cache:6379,redis://CACHE/0")];
    let found = warnings(&[], &variables);
    assert!(found[0].contains("names a server twice") && found[1].contains("only our own"), "{found:?}");
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
    let found = warnings(&[], &[("ALLCLEAR__PURGE__PATHS", &paths(11))]);
    assert!(found.len() == 1 && found[0].contains("has 11 paths;"), "{found:?}");
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
    let refused = |keys: &str| problems(&[("c.toml", &group(keys))], &[]);
    let own = "member = \"eu-1\"\nmembers = [\"eu-2\", \"us-1\"]";
    let words = "c.toml:6:11: group.members: does not name this member; \
                 fix: add group.member to it, or correct group.member";
    assert_eq!(refused(own), [words]);
    assert!(refused("members = [\"eu-1\"]")[0].contains("names one member"));
    assert!(refused("members = [\"eu-1\", \"eu-1\"]")[0].contains("names a member twice"));
    assert!(refused("takeover = \"10ms\"")[0].contains("is not in range"));
    let config = load_with(&[("c.toml", &group("members = [\"eu-2\", \"eu-1\"]"))], &[], &[]).unwrap().config;
    assert_eq!(config.group.members.into_iter().collect::<Vec<_>>(), ["eu-1", "eu-2"]);
}

#[test]
fn more_members_than_servers_are_refused() {
    let group = |members: &str| {
        let keys = format!("remotes = [\"b\", \"c\", \"a\"]\nmembers = [{members}]");
        problems(&[("c.toml", &format!("[redis]\nurl = \"a\"\n[group]\n{keys}"))], &[])
    };
    let found = group(r#""eu-1", "eu-2", "us-1", "us-2""#);
    assert!(
        found.len() == 1 && found[0].starts_with("c.toml:5:11: group.members: names 4 members, and 3 "),
        "{found:?}"
    );
    assert!(found[0].contains("fix: add the other members' Redis to group.remotes"), "{found:?}");
    let fits = "[redis]\nurl = \"a\"\n[group]\nremotes = [\"b\", \"c\"]\nmembers = [\"eu-1\", \"eu-2\"]";
    assert!(load_with(&[("c.toml", fits)], &[], &[]).is_ok(), "one server more may be another address of one of them");
}

#[test]
fn a_group_without_a_key_and_members_without_a_group_are_warned_about() {
    let unkeyed = warnings(&[("c.toml", "[redis]\nurl = \"a\"\n[group]\nremotes = [\"b\"]")], &[]);
    assert!(unkeyed.len() == 1 && unkeyed[0].contains("records are not signed"), "{unkeyed:?}");
    let prefixes = warnings(&[("c.toml", "[group]\nrepository_prefixes = [\"mirror/\"]")], &[]);
    assert!(prefixes.len() == 1 && prefixes[0].contains("has no effect: between members"), "{prefixes:?}");
    let alone = warnings(&[("c.toml", "[group]\nmembers = [\"eu-1\", \"eu-2\"]")], &[]);
    assert!(alone.len() == 1 && alone[0].contains("nothing is purged before it does"), "{alone:?}");
}

#[test]
fn the_key_of_a_group_is_read_from_its_file() {
    let key = [("ALLCLEAR__GROUP__KEY_FILE", "/key")];
    let good = load_with(&[("/key", "0123456789abcdef0123456789abcdef\n")], &key, &[]).unwrap().config;
    assert_eq!(good.group.keys[0].expose(), b"0123456789abcdef0123456789abcdef");
    let short = problems(&[("/key", "s3cret")], &key);
    assert!(short[0].contains("group.key_file: names a file with a key of 6 bytes"), "{short:?}");
    assert!(problems(&[], &key)[0].contains("cannot be read: there is no such file"));
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
    assert_eq!(config.pipeline, Pipeline { enabled: Enabled::Auto, groups, cross_namespace: true });
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
    let one = |text: &str, expected: &str| assert_eq!(problems(&[("c.toml", text)], &[]), [expected], "{text}");
    one("[pipeline]\nenabled = true", "c.toml:2:11: pipeline.enabled: is a truth value; fix: write a text in quotes");
    one(
        "[pipeline]\ngroups = []",
        "c.toml:2:10: pipeline.groups: is empty; fix: write \"allclear.dev\", or set pipeline.enabled = \"off\"",
    );
    one(
        "[pipeline]\ngroups = [\"allclear.dev/v1alpha1\"]",
        "c.toml:2:10: pipeline.groups: item 1 is not an API group; fix: write a group such as allclear.dev",
    );
    one(
        "[pipeline]\ngroups = [\"a.b\", \"a.b\"]",
        "c.toml:2:10: pipeline.groups: names a group twice; fix: write each group once",
    );
    for host in ["https://git.example.com", "git.example.com:443", "*.example.com", "git example"] {
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
