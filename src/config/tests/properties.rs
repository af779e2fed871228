//! Configuration: whatever is given, the later layer wins, every problem has a place, and no secret comes out.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::cli::answer::Output;
use crate::cli::config::{refused, show};
use crate::config::{Inputs, Invalid, Loaded, Place, key_of, load, name_of, reference};
use proptest::prelude::*;

/// What a run is given, owned.
#[derive(Debug, Clone, Default)]
struct Given {
    file: Option<String>,
    hooks: Option<String>,
    environment: BTreeMap<String, String>,
    flags: BTreeMap<String, String>,
}

impl Given {
    fn with<T>(&self, run: impl FnOnce(&Inputs<'_>) -> T) -> T {
        let read = |path: &Path| {
            let text = match path.to_str() {
                Some("c.toml") => self.file.clone(),
                Some("hooks.json") => self.hooks.clone(),
                _ => None,
            };
            text.ok_or_else(|| io::ErrorKind::NotFound.into())
        };
        run(&Inputs {
            file: self.file.as_ref().map(|_| PathBuf::from("c.toml")),
            environment: self.environment.clone(),
            flags: self.flags.clone(),
            service_account_namespace: None,
            read: &read,
        })
    }

    fn load(&self) -> Result<Loaded, Invalid> {
        self.with(load)
    }

    fn set(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.insert(name.to_owned(), value.into());
        self
    }

    /// Everything that is ever printed about a configuration.
    fn printed(&self) -> String {
        let shown = |output| format!("{:?}", self.with(|inputs| show(inputs, output)));
        let debugged = match self.load() {
            Ok(loaded) => format!("{loaded:?}"),
            Err(invalid) => format!("{invalid:?} {invalid} {:?}", refused(&invalid, Output::Json)),
        };
        format!("{} {} {debugged}", shown(Output::Table), shown(Output::Json))
    }
}

/// Keys with a value that is valid for them and differs from the default, as it is written in TOML.
const VALID: [(&str, &str); 13] = [
    ("watch.namespaces", "[\"shop\"]"),
    ("rollout.timeout", "\"20m\""),
    ("purge.creations_per_second", "0.25"),
    ("purge.on_recovered", "\"skip\""),
    ("purge.again_max", "0"),
    ("purge.again_after", "\"1m\""),
    ("purge.sample_tags", "false"),
    ("proof.paths", "[\"/shop\"]"),
    ("version.of", "\"annotation example.com/site-version\""),
    ("version.same_digest_is_same", "false"),
    ("group.name", "\"green\""),
    ("http.listen", "\"127.0.0.1:0\""),
    ("log.format", "\"text\""),
];

/// As the environment and flags have it.
fn plain(toml: &str) -> String {
    toml.trim_matches(['[', ']']).trim_matches('"').to_owned()
}

/// A secret of letters and signs that are special somewhere on its way, long enough not to occur by chance.
fn secret() -> impl Strategy<Value = String> {
    "[A-Za-z0-9/?#@:%+=_,;. -]{4}[A-Za-z]{12}[A-Za-z0-9/?#@:%+=_,;. -]{4}"
}

/// The middle of a secret: it survives every way of escaping, so it finds leaks that are escaped, too.
fn core_of(secret: &str) -> String {
    secret.chars().skip(4).take(12).collect()
}

proptest! {
    // Goal: for any choice of layers that give a key, the last of them is in effect and is named as the source.
    #[test]
    fn the_last_layer_that_gives_a_key_wins(index in 0..VALID.len(), in_file: bool, in_environment: bool, in_flags: bool) {
        let (key, toml) = VALID[index];
        let mut given = Given::default();
        if in_file {
            let (section, name) = key.split_once('.').unwrap();
            given.file = Some(format!("[{section}]\n{name} = {toml}\n"));
        }
        if in_environment {
            given.environment.insert(name_of(key), plain(toml));
        }
        if in_flags {
            given.flags.insert(key.to_owned(), plain(toml));
        }
        let loaded = given.load().expect("each of these is valid");
        let setting = loaded.effective.settings.iter().find(|setting| setting.key == key).unwrap();
        let is_expected = match &setting.place {
            Place::Flag(_) => in_flags,
            Place::Environment(name) => !in_flags && *name == name_of(key),
            Place::File { line, .. } => !in_flags && !in_environment && *line == 2,
            Place::Default => !in_flags && !in_environment && !in_file,
            Place::Controller => false,
        };
        prop_assert!(is_expected, "{setting:?}");
        // Whatever the layer, the same text means the same.
        let is_given = in_file || in_environment || in_flags;
        let alone = Given { flags: BTreeMap::from([(key.to_owned(), plain(toml))]), ..Given::default() };
        let expected = if is_given { alone.load() } else { Given::default().load() };
        prop_assert_eq!(loaded.config, expected.unwrap().config);
    }

    // Goal: no text, however broken, stops the parser, and every problem says where and what to do.
    #[test]
    fn any_file_is_judged_with_places_and_fixes(text in any::<String>(), hooks in any::<String>()) {
        let given = Given { file: Some(text), hooks: Some(hooks), ..Given::default() }.set("WEBHOOKS_CONFIG", "hooks.json");
        if let Err(invalid) = given.load() {
            prop_assert!(!invalid.problems.is_empty());
            for problem in invalid.problems {
                let is_placed = matches!(&problem.place, Place::File { line, column, .. } if *line > 0 && *column > 0);
                prop_assert!(is_placed && !problem.message.is_empty() && !problem.fix.is_empty(), "{problem:?}");
            }
        }
    }

    // Goal: as above, with text that gets further than noise does.
    #[test]
    fn any_almost_valid_file_is_judged(lines in prop::collection::vec(toml_line(), 0..12), hooks in almost_hooks()) {
        let given = Given { file: Some(lines.join("\n")), hooks: Some(hooks), ..Given::default() };
        if let Err(invalid) = given.set("WEBHOOKS_CONFIG", "hooks.json").load() {
            for problem in invalid.problems {
                prop_assert_ne!(problem.place, Place::Default);
            }
        }
    }

    #[test]
    fn any_environment_is_judged(names in prop::collection::vec(variable(), 0..6), values in prop::collection::vec(any::<String>(), 6)) {
        let given = Given { environment: names.into_iter().zip(values).collect(), ..Given::default() };
        if let Err(invalid) = given.load() {
            for problem in invalid.problems {
                let is_placed = matches!(&problem.place, Place::Environment(names) if names.split(", ").all(|name| given.environment.contains_key(name)));
                prop_assert!(is_placed, "{problem:?}");
            }
        }
    }

    // Goal: every key has a variable, which leads back to it and to nothing else.
    #[test]
    fn a_variable_leads_back_to_its_key(section in "[a-z]{1,8}", name in "[a-z]{1,8}(_[a-z]{1,8}){0,3}") {
        let key = format!("{section}.{name}");
        prop_assert_eq!(key_of(&name_of(&key)), Some(key));
    }

    #[test]
    fn any_name_is_a_key_or_none(name in any::<String>()) {
        prop_assert_eq!(key_of(&name).is_some(), name.starts_with("ALLCLEAR__"));
    }

}

proptest! {
    // Each case loads dozens of configurations.
    #![proptest_config(ProptestConfig::with_cases(48))]

    // Goal: a password, well escaped or not, comes out of no command, error or Debug, wherever it was put.
    #[test]
    fn a_password_of_redis_never_comes_out(secret in secret(), host in "[a-z]{1,8}", bad in any::<bool>()) {
        let core = core_of(&secret);
        let tail = if bad { "/x/y" } else { "" };
        let url = format!("redis://:{secret}@{host}{tail}");
        let quoted = serde_json::to_string(&url).unwrap();
        let all = [
            Given::default().set("REDIS_HOST", &url),
            Given::default().set("REDIS_HOST", &url).set("REDIS_PORT", "7000"),
            Given::default().set("ALLCLEAR__REDIS__URL", &url).set("REDIS_HOST", "other"),
            Given::default().set("REDIS_HOST", "own").set("REMOTE_REDIS_HOSTS", format!("a, {url},b__1")),
            Given::default().set("REDIS_HOST", format!("u:{secret}@{host}")),
            // A comma in a password takes it apart.
            Given::default().set("REDIS_HOST", "own").set("REMOTE_REDIS_HOSTS", format!("redis://:{core},{core}@{host}")),
            // In the wrong place, and under names that do not exist.
            Given::default().set("LOGLEVEL", &url).set("NAMESPACE", &url).set("ALLCLEAR__HTTP__LISTEN", &url),
            Given::default().set("ALLCLEAR__PURGE__PATHS", &url).set("ALLCLEAR__PURGE__DEBOUNCE", &url),
            Given::default().set("ALLCLEAR__REDIS__PASSWORD", &secret).set("ALLCLEAR__REDIS", &secret),
            Given { file: Some(format!("[redis]\nurl = {quoted}\n")), ..Given::default() },
            Given { file: Some(format!("[redis]\nurl = {quoted}\n[group]\nremotes = [{quoted}]\n")), ..Given::default() },
            Given { file: Some(format!("[redis]\npassword = {quoted}\n")), ..Given::default() },
            Given { file: Some(format!("[redis]\nurl = redis://:{core}@{host}\n")), ..Given::default() },
            Given { flags: BTreeMap::from([("redis.url".to_owned(), url.clone())]), ..Given::default() },
        ];
        for given in all {
            let printed = given.printed();
            prop_assert!(!printed.contains(&core), "{given:?}\n{printed}");
        }
    }

    // Goal: the same for everything in a webhooks file that may be a credential.
    #[test]
    fn nothing_secret_of_a_hook_comes_out(secret in secret(), bad in any::<bool>()) {
        let core = core_of(&secret);
        let quoted = serde_json::to_string(&secret).unwrap();
        let scheme = if bad { "htp" } else { "https" };
        let url = serde_json::to_string(&format!("{scheme}://u:{core}@ci.example.com/{core}?t={core}")).unwrap();
        let extra = if bad { format!(", \"sekret\": {quoted}, \"timeout\": 5") } else { String::new() };
        let hooks = format!(
            "{{\"webhooks\": [{{\"name\": \"web\", \"url\": {url}, \"method\": \"POST\", \"secret\": [{quoted}, {}], \
             \"headers\": {{\"a\": {quoted}}}, \"parameters\": {{\"b\": {quoted}}}{extra}}}]}}",
            serde_json::to_string(&format!("whsec_{secret}")).unwrap(),
        );
        let given = Given { hooks: Some(hooks), ..Given::default() }.set("WEBHOOKS_CONFIG", "hooks.json");
        let printed = given.printed();
        prop_assert!(!printed.contains(&core), "{given:?}\n{printed}");
    }
}

/// A hook with this member beside what it needs.
fn hook(member: &str) -> Given {
    let hooks = format!(
        r#"{{"webhooks": [{{"name": "web", "url": "https://ci.example.com/x", "method": "POST", {member}}}]}}"#
    );
    Given { hooks: Some(hooks), ..Given::default() }.set("WEBHOOKS_CONFIG", "hooks.json")
}

fn file(text: String) -> Given {
    Given { file: Some(text), ..Given::default() }
}

/// A secret in every place in which it is refused, or is meant to be. It has no shape by which it could be known. The name of a key is
/// no such place: a slip is found by its name (`suggest::unknown`).
fn refused_places(secret: &str) -> Vec<Given> {
    let set = |name: &str, value: String| Given::default().set(name, value);
    let own = || Given::default().set("REDIS_HOST", "own");
    let mut places = vec![
        own().set("REDIS_PORT", secret),
        set("REDIS_HOST", format!("cache:{secret}")),
        set("REDIS_HOST", format!("redis://cache:{secret}")),
        set("REDIS_HOST", format!("redis://:{secret}@cache/x")),
        own().set("REMOTE_REDIS_HOSTS", format!("a,b:{secret},c")),
        own().set("REMOTE_REDIS_HOSTS", format!("redis://u:{secret}@b")),
        set("ALLCLEAR__HTTP__LISTEN", format!("0.0.0.0:{secret}")),
        set("ALLCLEAR__GROUP__KEY_FILE", secret.to_owned()),
        set("ALLCLEAR__GROUP__KEY_FILE", format!("/{secret}")),
        set("ALLCLEAR__REDIS__CA_FILE", secret.to_owned()),
        set("WEBHOOKS_CONFIG", secret.to_owned()),
        set("ALLCLEAR__CLOUDFRONT__ENDPOINT", format!("https://u:{secret}@cloudfront.example.com")),
        set("ALLCLEAR__CLOUDFRONT__ENDPOINT", format!("cloudfront.example.com:{secret}")),
        set("ALLCLEAR__CLOUDFRONT__REGION", format!("{secret} ") + "!"),
        set("ALLCLEAR__WEBHOOKS__PROXY", format!("http://u:{secret}@proxy:3128")),
        set("ALLCLEAR__WEBHOOKS__PROXY", format!("proxy:{secret}")),
        set("NAMESPACE", format!("{secret}!")),
        set("ALLCLEAR__GROUP__MEMBER", format!("{secret}!")),
        set("ALLCLEAR__GROUP__MEMBERS", format!("a,{secret}!")),
        set("ALLCLEAR__GROUP__REPOSITORY_PREFIXES", format!("{secret} x")),
        set("ALLCLEAR__LEADER__REPLICA", format!("{secret}!")),
        set("LOGLEVEL", secret.to_owned()),
        file(format!("[redis]\nurl = {secret}\n")),
        file(format!("[redis]\nurl = \"{secret}\n")),
        file(format!("{secret}\n")),
        Given { flags: BTreeMap::from([("http.listen".to_owned(), secret.to_owned())]), ..Given::default() },
    ];
    for key in
        ["PURGE__DEBOUNCE", "PURGE__PATHS", "PURGE__CREATIONS_PER_SECOND", "LOG__FORMAT", "DRY_RUN", "LEDGER__BACKEND"]
    {
        places.push(set(&format!("ALLCLEAR__{key}"), secret.to_owned()));
    }
    let members = [
        format!(r#""headers": {{"{secret} ": "x"}}"#),
        format!(r#""headers": {{"{secret}": "x\u0000"}}"#),
        format!(r#""headers": {{"{secret}": "x"}}, "nope": 1"#),
        format!(r#""headers": {{"authorization": "Bearer {secret}"}}"#),
        format!(r#""parameters": {{"{secret}": null}}"#),
        format!(r#""parameters": {{"{secret}": "{secret}"}}"#),
        format!(r#""events": ["{secret}"]"#),
        format!(r#""format": "{secret}""#),
        format!(r#""workloads": ["{secret}!"]"#),
        format!(r#""timeout": "{secret}""#),
        format!(r#""retry": ["{secret}"]"#),
        format!(r#""secret": "{secret}""#),
        format!(r#""secret": "whsec_{secret}""#),
        format!(r#""secretFile": "{secret}""#),
        format!(r#""secretFile": ["/{secret}"]"#),
        format!(r#""{secret} "#),
        format!(r#""url": "https://u:{secret}@ci.example.com/{secret}""#),
    ];
    places.extend(members.iter().map(|member| hook(member)));
    places.push(hook("\"format\": \"json\"").set("ALLCLEAR__WEBHOOKS__PROXY", format!("http://:{secret}@p")));
    places
}

// Faults: T11
/// T11. Goal: a secret that was put into the wrong place is not shown with the mistake, and one in its right place is
/// not shown.
#[test]
fn strangers_t11_no_secret_is_seen_wherever_it_was_put() {
    let mut seen = Vec::new();
    let mut places = 0;
    for secret in ["canary-hunter2", "Canary_Correct.Horse", "canarypassword"] {
        for given in refused_places(secret) {
            places += 1;
            let printed = given.printed().to_lowercase();
            if printed.contains(&secret.to_lowercase()) {
                seen.push(format!("{given:?}\n{printed}"));
            }
        }
    }
    // What is valid is in effect and shown; there it is known by its shape.
    for secret in
        ["AKIAIOSFODNN7EXAMPLE", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"]
    {
        let set = |name: &str, value: String| Given::default().set(name, value);
        for given in [
            set("ALLCLEAR__GROUP__NAME", secret.to_owned()),
            set("ALLCLEAR__LEADER__REPLICA", secret.replace('_', "")),
            set("ALLCLEAR__GROUP__REPOSITORY_PREFIXES", secret.to_owned()),
            set("ALLCLEAR__PURGE__PATHS", format!("/{secret}")),
            set("LOGLEVEL", format!("{secret}=debug")),
            set("REDIS_HOST", secret.to_owned()),
            set("REDIS_HOST", format!("redis://{secret}@cache")),
            hook(&format!(
                r#""events": ["purge.completed"], "workloads": ["{}"]"#,
                secret.to_lowercase().replace('_', "")
            )),
            hook(&format!(r#""headers": {{"{secret}": "x"}}"#)),
        ] {
            places += 1;
            let commands = [Output::Table, Output::Json].map(|output| {
                let shown = given.with(|inputs| show(inputs, output));
                shown.out + &shown.err
            });
            let needle = secret.to_lowercase().replace('_', "");
            if commands.concat().to_lowercase().replace('_', "").contains(&needle) {
                seen.push(format!("{given:?}\n{}", commands.concat()));
            }
        }
    }
    eprintln!("T11: secrets seen, of {places} that were put somewhere: {} (aim 0)", seen.len());
    assert!(places >= 26 && seen.is_empty(), "{}", seen.join("\n\n"));
}

// Faults: T11
/// T11. Goal: what is valid and gives a credential away is warned about.
#[test]
fn strangers_t11_credentials_without_tls_and_short_keys_are_warned_about() {
    let warned =
        |given: Given| given.load().unwrap().warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let plain = |member: &str| {
        let hooks = format!(
            r#"{{"webhooks": [{{"name": "web", "url": "http://ci.example.com/x", "method": "POST", {member}}}]}}"#
        );
        Given { hooks: Some(hooks), ..Given::default() }.set("WEBHOOKS_CONFIG", "hooks.json")
    };
    assert!(
        warned(plain(r#""headers": {"Authorization": "x"}"#))
            .contains("/webhooks/0/url: sends credentials without TLS")
    );
    assert_eq!(warned(plain(r#""headers": {"x-site": "x"}"#)), "");
    assert_eq!(warned(hook(r#""headers": {"Authorization": "x"}"#)), "");
    assert!(
        warned(hook(r#""secret": "12345678901234567890123""#)).contains("/webhooks/0/secret: has a key of 23 bytes")
    );
    assert_eq!(warned(hook(r#""secret": "123456789012345678901234""#)), "");
    let proxied = |judges: &str| {
        let given = hook(r#""format": "json""#).set("ALLCLEAR__WEBHOOKS__PROXY", "http://proxy:3128");
        warned(given.set("ALLCLEAR__WEBHOOKS__PROXY_JUDGES", judges))
    };
    assert!(proxied("false").contains("webhooks.proxy: would resolve the names of 1 webhooks"), "{}", proxied("false"));
    assert_eq!(proxied("true"), "");
    let loud = warned(Given::default().set("LOGLEVEL", "debug,kube=debug,hyper=warn"));
    assert!(loud.contains("they are left out: kube=debug"), "{loud}");
}

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(reference().into_iter().map(|row| row.key).collect::<Vec<_>>())
}

fn toml_line() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("true".to_owned()),
        Just("[]".to_owned()),
        Just("{ a = 1 }".to_owned()),
        Just("1979-05-27".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:?}")),
        "\"[ -!#-\\[\\]-~]{0,20}\"",
        "\\[\"[a-z/*]{0,9}\", \"[a-z/*,]{0,9}\"\\]",
    ];
    prop_oneof![
        3 => (key(), value).prop_map(|(key, value)| format!("{key} = {value}")),
        1 => "\\[[a-z]{1,9}\\]",
        1 => "[a-z.]{1,9} = [0-9]{1,3}",
    ]
}

fn variable() -> impl Strategy<Value = String> {
    let old =
        ["NAMESPACE", "REDIS_HOST", "REDIS_PORT", "REMOTE_REDIS_HOSTS", "LOGLEVEL", "WEBHOOKS_CONFIG", "POD_NAMESPACE"];
    prop_oneof![
        key().prop_map(|key| name_of(&key)),
        prop::sample::select(old.to_vec()).prop_map(str::to_owned),
        "ALLCLEAR__[A-Z_]{0,12}",
    ]
}

fn almost_hooks() -> impl Strategy<Value = String> {
    let names = [
        "name",
        "url",
        "method",
        "headers",
        "parameters",
        "events",
        "workloads",
        "format",
        "secret",
        "timeout",
        "retry",
    ];
    let value = prop_oneof![
        Just("null".to_owned()),
        Just("[]".to_owned()),
        Just("{\"a\": [1, {}]}".to_owned()),
        "\"(GET|form|5s|\\*|http://a/|purge.completed|[a-z/]{0,5})\"",
        "\\[\"(5s|\\*|purge.completed|[a-z/]{0,5})\"\\]",
        "-?[1-9][0-9]{0,3}(\\.5e3)?",
    ];
    let member =
        (prop::sample::select(names.to_vec()), value).prop_map(|(name, value)| format!("\"{name}\" : {value}"));
    let hook = prop::collection::vec(member, 0..12).prop_map(|members| format!("{{{}}}", members.join(" ,\n")));
    prop::collection::vec(hook, 0..4).prop_map(|hooks| format!("{{\"webhooks\": [{}]}}", hooks.join(", ")))
}
