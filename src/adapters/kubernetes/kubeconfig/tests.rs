use super::*;

/// Stands where a secret could be, in every value: no words may repeat it.
const SECRET: &str = "s3cr3t";

/// A kubeconfig whose cluster and user have these fields, each a line of YAML.
fn with(cluster: &[&str], user: &[&str]) -> String {
    let block = |lines: &[&str]| lines.iter().map(|line| format!("    {line}\n")).collect::<String>();
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
         contexts:\n- name: here\n  context: {{cluster: eu, user: reader, namespace: ignored}}\n\
         clusters:\n- name: eu\n  cluster:\n{}users:\n- name: reader\n  user:\n{}",
        block(cluster),
        block(user)
    )
}

fn refused(text: &str) -> String {
    let why = read(text.as_bytes(), Origin::Others).map(|config| config.cluster_url).expect_err(text).to_string();
    assert!(!why.contains(SECRET), "{why}");
    why
}

const SERVER: &str = "server: https://eu-1.example.com:6443";
const TOKEN: &str = "token: s3cr3t";

/// What looks like a certificate, in base64 once more.
fn authority() -> String {
    let der = STANDARD.encode([0x30, 0x03, 0x02, 0x01, 0x01]);
    STANDARD.encode(format!("-----BEGIN CERTIFICATE-----\n{der}\n-----END CERTIFICATE-----\n"))
}

#[test]
fn what_leads_to_a_cluster_and_says_who_we_are_is_taken_and_nothing_else() {
    let ca = format!("certificate-authority-data: {}", authority());
    let text =
        with(&[SERVER, &ca, "tls-server-name: kube", "extensions: []"], &[TOKEN, "username: ''", "proxy-url: null"]);
    let config = read(text.as_bytes(), Origin::Others).unwrap();
    assert_eq!(config.cluster_url.to_string(), "https://eu-1.example.com:6443/");
    assert_eq!(config.root_cert.map(|all| all.len()), Some(1));
    assert_eq!(config.tls_server_name.as_deref(), Some("kube"));
    assert!(config.auth_info.token.is_some() && config.proxy_url.is_none() && !config.accept_invalid_certs);
    let text = with(
        &["server: https://10.0.0.1/k8s/clusters/c-1"],
        &["client-certificate-data: YQ==", "client-key-data: YQ=="],
    );
    let config = read(text.as_bytes(), Origin::Others).unwrap();
    assert_eq!(config.cluster_url.path(), "/k8s/clusters/c-1");
    assert!(config.auth_info.client_key_data.is_some());
}

#[test]
fn a_field_that_would_run_a_program_or_read_our_files_is_refused_by_its_name() {
    let rows: &[(&[&str], &[&str], &str)] = &[
        (&[], &["exec: {apiVersion: v1, command: s3cr3t}"], "exec ("),
        (&[], &["auth-provider: {name: s3cr3t}"], "auth-provider ("),
        (&[], &["tokenFile: /s3cr3t"], "tokenFile ("),
        (&[], &["client-certificate: /s3cr3t"], "client-certificate ("),
        (&[], &["client-key: /s3cr3t"], "client-key ("),
        (&[], &["username: s3cr3t"], "username and password"),
        (&[], &["password: s3cr3t"], "username and password"),
        (&[], &["as: s3cr3t"], "as, as-uid"),
        (&[], &["as-uid: s3cr3t"], "as, as-uid"),
        (&[], &["as-groups: [s3cr3t]"], "as, as-uid"),
        (&[], &["as-user-extra: {s3cr3t: [s3cr3t]}"], "as, as-uid"),
        (&[], &["s3cr3t: s3cr3t"], "a field of its user that is not known"),
        (&["certificate-authority: /s3cr3t"], &[], "certificate-authority ("),
        (&["proxy-url: http://s3cr3t"], &[], "proxy-url ("),
        (&["insecure-skip-tls-verify: true"], &[], "insecure-skip-tls-verify ("),
        (&["s3cr3t: s3cr3t"], &[], "a field of its cluster that is not known"),
    ];
    for (cluster, user, named) in rows {
        let why = refused(&with(&[&[SERVER], *cluster].concat(), &[&[TOKEN], *user].concat()));
        assert!(why.starts_with("it may not contain ") && why.contains(named), "{named}: {why}");
    }
    let both = refused(&with(&[SERVER], &[TOKEN, "exec: {command: a}", "tokenFile: /b"]));
    assert!(both.contains("exec (") && both.contains(", nor tokenFile ("), "{both}");
}

#[test]
fn only_the_current_context_counts() {
    let other = with(&[SERVER], &[TOKEN]) + "- name: admin\n  user:\n    exec: {command: s3cr3t}\n";
    assert!(read(other.as_bytes(), Origin::Others).is_ok());
}

#[test]
fn what_is_missing_or_broken_is_said_without_its_values() {
    let good = with(&[SERVER], &[TOKEN]);
    let rows = [
        (good.replace("current-context: here", "current-context: s3cr3t"), "it does not have its current-context"),
        (good.replace("current-context: here\n", ""), "it names no current-context"),
        (good.replace("cluster: eu,", "cluster: s3cr3t,"), "it does not have the cluster"),
        (good.replace("user: reader,", "user: s3cr3t,"), "it does not have the user"),
        (with(&[SERVER], &["token: null"]), "neither a token nor"),
        (with(&[SERVER], &["client-key-data: s3cr3t"]), "only one of"),
        (with(&[SERVER, "certificate-authority-data: s3cr3t!"], &[TOKEN]), "is not base64"),
        (with(&[SERVER, "certificate-authority-data: czNjcjN0"], &[TOKEN]), "has no certificate in PEM"),
        (with(&["server: null"], &[TOKEN]), "is not a"),
        (with(&["server: http://s3cr3t.example.com"], &[TOKEN]), "not an https URL"),
        (with(&["server: https://s3cr3t:s3cr3t@eu"], &[TOKEN]), "a user or a query"),
        (with(&["server: https://eu/?s3cr3t"], &[TOKEN]), "a user or a query"),
        (with(&["server: https://127.0.0.1:6443"], &[TOKEN]), "this machine itself"),
        (with(&["server: https://[::1]:6443"], &[TOKEN]), "this machine itself"),
        (with(&["server: https://169.254.169.254"], &[TOKEN]), "link-local"),
        (with(&["server: 's3cr3t s3cr3t'"], &[TOKEN]), "is not a URL"),
        ("token: s3cr3t: s3cr3t".to_owned(), "not valid"),
        ("- s3cr3t".to_owned(), "not valid"),
        ("s3cr3t".to_owned(), "not valid"),
        (format!("# {}", "s3cr3t".repeat(BYTES_MAX)), "more than 65536 bytes"),
    ];
    for (text, expected) in rows {
        let why = refused(&text);
        assert!(why.contains(expected), "{expected}: {why}");
    }
    assert_eq!(read(&[0xff, 0xfe], Origin::Others).map(drop), Err(Unusable::Wrong("it is not text in UTF-8")));
}

#[test]
fn a_bomb_of_aliases_ends_and_no_input_panics() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..7 {
        let before = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", [before.as_str(); 9].join(", "));
    }
    assert!(read(bomb.as_bytes(), Origin::Others).is_err());
    let good = with(&[SERVER], &[TOKEN]);
    for end in 0..good.len() {
        let _ = read(&good.as_bytes()[..end], Origin::Others);
    }
}

#[test]
fn a_stand_in_may_be_on_this_machine_and_plain() {
    let text = with(&["server: http://127.0.0.1:8080"], &[TOKEN]);
    assert!(read(text.as_bytes(), Origin::StandIn).is_ok());
    assert!(read(text.as_bytes(), Origin::Others).is_err());
}

#[test]
fn the_kubeconfig_that_the_manifests_of_a_leaf_tell_how_to_write_is_taken() {
    let manifest = include_str!("../../../../deploy/leaf/kustomization.yaml");
    let (_, rest) = manifest.split_once("<<END\n").unwrap();
    let (text, _) = rest.split_once("#   END\n").unwrap();
    let text: String = text.lines().map(|line| format!("{}\n", line.trim_start_matches("#   "))).collect();
    let filled = [("$server", "https://eu-1.example.com:6443"), ("$ca", &authority()), ("$token", SECRET)];
    let text = filled.into_iter().fold(text, |text, (name, value)| text.replace(name, value));
    let config = read(text.as_bytes(), Origin::Others).unwrap();
    assert_eq!(config.cluster_url.to_string(), "https://eu-1.example.com:6443/");
    assert!(config.root_cert.is_some() && config.auth_info.token.is_some());
}
