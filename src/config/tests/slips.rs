//! Slips in names: each is reported once, by its name and with the likely one; a value is never shown.

use expect_test::expect;

use super::*;
use kernel::names::account::AccountName;

#[test]
fn an_unknown_key_is_shown_with_its_section_and_its_value_is_not() {
    let file = "[log]\ncolour = \"hunter2\"\n[nosuch]\nx = 1\n[nosuch.inner]\ny = 2\n";
    let found = problems(&[("c.toml", file)], &[("ALLCLEAR__FOO__BAR", "hunter2")]);
    expect![[r#"
        c.toml:2:1: log.colour: is not a key; fix: remove it, or use log.format or log.level
        c.toml:3:2: nosuch: is not a section; fix: remove it, or use a key of aws, cloudfront, distributions, git, group, hooks, http, leader, ledger, log, pipeline, proof, purge, redis, repo, rollout, secrets, site, tenants, traces, version, watch, webhooks or workloads
        environment ALLCLEAR__FOO__BAR: foo.bar: is not a key; fix: remove it, or use a key of aws, cloudfront, distributions, git, group, hooks, http, leader, ledger, log, pipeline, proof, purge, redis, repo, rollout, secrets, site, tenants, traces, version, watch, webhooks or workloads
    "#]].assert_eq(&lines(found.iter().cloned()));
    assert!(!found.concat().contains("hunter2"));
}

#[test]
fn a_slip_is_not_told_again_by_what_follows_from_it() {
    let tenants = "[[tenants.allow]]\nnamespace = [\"shop\"]\ndistributions_max = 20\n";
    let hooks = r#"{"webhooks": [{"name": "web", "ulr": "https://u:hunter2@ci.example.com", "method": "GET"}]}"#;
    let files = [("c.toml", tenants), ("hooks.json", hooks)];
    expect![[r#"
        c.toml:1:1: tenants.allow: entry 1: namespace is not a key; fix: did you mean namespaces?
        hooks.json:1:31: /webhooks/0/ulr: is not known here; fix: did you mean "url"?
    "#]]
    .assert_eq(&lines(problems(&files, &[("WEBHOOKS_CONFIG", "hooks.json")])));
}

#[test]
fn a_file_that_cannot_be_read_is_one_problem_whatever_depends_on_it() {
    let remotes = [("REMOTE_REDIS_HOSTS", "eu-2")];
    assert_eq!(problems(&[("c.toml", "[redis\nurl = \"cache\"\n")], &remotes).len(), 1);
    // Alone, the problem would be that there is no Redis.
    assert_eq!(problems(&[], &remotes).len(), 1);
}

#[test]
fn near_misses_of_the_environment_are_named() {
    for (name, meant) in [
        ("ALLCLEAR_ROLLOUT_TIMEOUT", "ALLCLEAR__ROLLOUT__TIMEOUT"),
        ("ALLCLEAR_ROLLOUT__TIMEOUT", "ALLCLEAR__ROLLOUT__TIMEOUT"),
        ("allclear_dry_run", "ALLCLEAR__DRY_RUN"),
    ] {
        let found = problems(&[], &[(name, "hunter2")]);
        assert!(found.iter().all(|one| one.starts_with(&format!("environment {name}: "))), "{found:#?}");
        let slip = format!("is not read; fix: write it as {meant}");
        assert!(found.len() <= 2 && found.iter().any(|one| one.ends_with(&slip)), "{found:#?}");
        assert!(!found.concat().contains("hunter2"), "{found:#?}");
    }
    expect![[r#"
        environment ALLCLEAR__ROLLOUT_TIMEOUT: rollout_timeout: is not a key; fix: did you mean ALLCLEAR__ROLLOUT__TIMEOUT?
    "#]].assert_eq(&lines(problems(&[], &[("ALLCLEAR__ROLLOUT_TIMEOUT", "5m")])));
    let warned = [
        ("ALLCLEAR_ROLLOUT_TIMOUT", "ALLCLEAR__ROLLOUT__TIMEOUT"),
        ("REMOTE_REDIS_HOST", "REMOTE_REDIS_HOSTS"),
        ("WEBHOOK_CONFIG", "WEBHOOKS_CONFIG"),
        ("NAMESPACES", "NAMESPACE"),
        ("LOG_LEVEL", "LOGLEVEL"),
    ];
    for (name, meant) in warned {
        let found = warnings(&[], &[(name, "1m")]);
        assert!(found.len() == 1 && found[0].ends_with(&format!("is not read; did you mean {meant}?")), "{found:#?}");
    }
}

#[test]
fn variables_of_others_are_no_near_misses() {
    for (name, value) in [
        ("ALLCLEAR_SERVICE_HOST", "10.96.0.7"),
        ("ALLCLEAR_PORT", "tcp://10.96.0.7:80"),
        ("ALLCLEAR_PORT_80_TCP_ADDR", "10.96.0.7"),
        ("ALLCLEAR_HTTP_PAGE_SERVICE_PORT", "8081"),
        ("ALLCLEAR_BIN", "/usr/bin/allclear"),
        ("POD_NAMESPACE", "infra"),
        ("HOSTNAME", "web-1"),
    ] {
        assert_eq!(warnings(&[], &[(name, value)]), Vec::<String>::new(), "{name}");
    }
    // The right name is given as well, so the other is another program's.
    assert_eq!(warnings(&[], &[("LOG_LEVEL", "x"), ("LOGLEVEL", "info")]), Vec::<String>::new());
}

#[test]
fn the_accounts_are_read_and_all_that_is_wrong_with_them_is_said_at_once() {
    let good = "[[aws.account]]\nname = \"shop\"\nrole_arn = \"arn:aws:iam::111111111111:role/team/allclear\"\nexternal_id = \"of-shop\"\n\
                hosts = [\"*.example.com\"]\n[[aws.account]]\nname = \"default\"\nnamespaces = [\"blog\", \"team-*\"]\n\
                distributions = [\"E1\"]\nregion = \"eu-west-1\"\n";
    let config = load_with(&[("c.toml", good)], &[], &[]).unwrap().config;
    let used = config.aws.used();
    let said = |(name, account): (&AccountName, &Account)| {
        (name.to_string(), account.role_arn.is_some(), account.scope.hosts.len(), account.scope.distributions.len())
    };
    assert_eq!(
        used.iter().map(said).collect::<Vec<_>>(),
        [("default".to_owned(), false, 0, 1), ("shop".to_owned(), true, 2, 0),]
    );
    assert!(!format!("{used:?}").contains("of-shop"), "external ids are in no log: {used:?}");
    let plain = load_with(&[], &[], &[]).unwrap().config;
    assert!(plain.aws.used().is_empty() && plain.aws.scopes().is_one());
    let without_own = good.replace(
        "[[aws.account]]\nname = \"default\"",
        "[[aws.account]]\nrole_arn = \"arn:aws:iam::222222222222:role/b\"\nname = \"b\"",
    );
    let config = load_with(&[("c.toml", &format!("[aws]\ndefault = false\n{without_own}"))], &[], &[]).unwrap().config;
    assert_eq!(config.aws.used().len(), 2);
    let bad = "[[aws.account]]\nrole = \"x\"\n[[aws.account]]\nname = \"Shop\"\nrole_arn = \"arn:aws:iam::1:user/x\"\nexternal_id = \"a b\"\n\
               [[aws.account]]\nname = \"default\"\nrole_arn = \"arn:aws:iam::111111111111:role/x\"\n";
    expect![[r#"
        c.toml:1:1: aws.account: entry 1: has no name; fix: add name = "shop"
        c.toml:1:1: aws.account: entry 1: names no role; fix: add role_arn = "arn:aws:iam::123456789012:role/allclear", a role that our credentials may assume
        c.toml:1:1: aws.account: entry 1: role is not a key; fix: remove it, or use name, role_arn, external_id, region, hosts, namespaces or distributions
        c.toml:1:1: aws.account: entry 2: external_id is none that AWS takes; fix: write 2 to 1224 letters, digits and any of _+=,.@:/-
        c.toml:1:1: aws.account: entry 2: name is not the name of an account; fix: write small letters, digits and hyphens, such as shop
        c.toml:1:1: aws.account: entry 2: role_arn is not the ARN of a role; fix: write arn:aws:iam::123456789012:role/allclear
        c.toml:1:1: aws.account: entry 3: default assumes a role; fix: give it another name; default is the account of our own credentials
    "#]]
    .assert_eq(&lines(problems(&[("c.toml", bad)], &[])));
    let twice = "[[aws.account]]\nname = \"a\"\nrole_arn = \"arn:aws:iam::111111111111:role/a\"\ndistributions = [\"E1\", \"E2\"]\n\
                 [[aws.account]]\nname = \"b\"\nrole_arn = \"arn:aws:iam::111111111111:role/b\"\ndistributions = [\"E2\"]\n";
    let twice = problems(&[("c.toml", twice)], &[]);
    assert_eq!(twice.len(), 2, "{twice:?}");
    for words in ["entry 2: is in the AWS account of a", "entry 2: E2 is among the distributions of a too"] {
        assert!(twice.iter().any(|problem| problem.contains(words)), "{words}: {twice:?}");
    }
    let alone = problems(&[("c.toml", "[aws]\ndefault = false\n")], &[]);
    assert!(alone.len() == 1 && alone[0].contains("aws.default: leaves no account"), "{alone:?}");
}
