//! Where spans are sent: by our own keys, by the variables of OpenTelemetry, and nowhere; and that no header is shown.

use expect_test::expect;

use super::*;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

fn endpoint(variables: &[(&str, &str)]) -> Option<String> {
    load_with(&[], variables, &[]).unwrap().config.traces.endpoint.map(|endpoint| endpoint.expose().to_string())
}

#[test]
fn nothing_is_traced_unless_an_address_is_given() {
    assert_eq!(endpoint(&[]), None);
    assert_eq!(endpoint(&[("OTEL_RESOURCE_ATTRIBUTES", "a=b"), ("OTEL_SERVICE_NAME", "x")]), None);
    for off in [("OTEL_SDK_DISABLED", "TRUE"), ("OTEL_TRACES_EXPORTER", "none")] {
        assert_eq!(endpoint(&[(ENDPOINT, "http://c:4318"), off]), None, "{off:?}");
    }
}

#[test]
fn the_variables_of_opentelemetry_are_read_as_their_specification_says() {
    let traces = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    for (given, wanted) in [
        (vec![(ENDPOINT, "http://c:4318")], "http://c:4318/v1/traces"),
        (vec![(ENDPOINT, "https://c/otlp/")], "https://c/otlp/v1/traces"),
        (vec![(traces, "https://c/own")], "https://c/own"),
        (vec![(ENDPOINT, "http://c:4318"), (traces, "https://d/own")], "https://d/own"),
    ] {
        assert_eq!(endpoint(&given).as_deref(), Some(wanted), "{given:?}");
    }
    let given = [
        (ENDPOINT, "http://c:4318"),
        (HEADERS, "Authorization=Basic%20aGk6ZW5k==, x-scope-orgid = shop"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=a%2Cb"),
        ("OTEL_SERVICE_NAME", "50% off, purger"),
    ];
    let traces = load_with(&[], &given, &[]).unwrap().config.traces;
    let headers: Vec<(&str, &str)> =
        traces.headers.iter().map(|(name, value)| (name.as_str(), value.expose().as_str())).collect();
    assert_eq!(headers, [("authorization", "Basic aGk6ZW5k=="), ("x-scope-orgid", "shop")]);
    let attributes: Vec<(&str, &str)> =
        traces.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(attributes, [("deployment.environment.name", "a,b"), ("service.name", "50% off, purger")]);
}

#[test]
fn our_own_keys_win_over_the_variables_of_opentelemetry() {
    let given = [(ENDPOINT, "http://theirs:4318"), ("ALLCLEAR__TRACES__ENDPOINT", "http://ours:4318/v1/traces")];
    assert_eq!(endpoint(&given).as_deref(), Some("http://ours:4318/v1/traces"));
}

#[test]
fn what_cannot_be_done_as_asked_is_a_warning() {
    let warned = |variables: &[(&str, &str)]| warnings(&[], variables).join("\n");
    let address = (ENDPOINT, "http://c:4318");
    assert_eq!(warned(&[address]), "");
    let given: [&[(&str, &str)]; 9] = [
        &[(ENDPOINT, "http://c:4317")],
        &[(ENDPOINT, "collector:4317"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
        &[(ENDPOINT, "collector:4317")],
        &[address, (HEADERS, "hunter2")],
        &[address, ("OTEL_RESOURCE_ATTRIBUTES", "a=%")],
        &[address, ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere.pem")],
        &[address, ("OTEL_TRACES_SAMPLER", "always_off")],
        &[address, (HEADERS, "a=b")],
        &[address, ("ALLCLEAR__DRY_RUN", "true")],
    ];
    expect![[r#"
        environment OTEL_EXPORTER_OTLP_ENDPOINT: traces.endpoint: has the port of OTLP over gRPC, which allclear does not speak: over HTTP collectors listen at 4318
        environment OTEL_EXPORTER_OTLP_PROTOCOL: traces.endpoint: nothing is traced, because OTEL_EXPORTER_OTLP_PROTOCOL asks for gRPC, and allclear sends spans over HTTP: set traces.endpoint to the collector's address for that, port 4318
        environment OTEL_EXPORTER_OTLP_ENDPOINT: traces.endpoint: nothing is traced, because OTEL_EXPORTER_OTLP_ENDPOINT is no http or https URL: set traces.endpoint to the collector's address
        environment OTEL_EXPORTER_OTLP_HEADERS: traces.endpoint: nothing is traced, because OTEL_EXPORTER_OTLP_HEADERS is no list of name=value with commas between them: set traces.headers
        environment OTEL_RESOURCE_ATTRIBUTES: traces.endpoint: OTEL_RESOURCE_ATTRIBUTES is not used: it is no list of name=value with commas between them
        environment OTEL_EXPORTER_OTLP_CERTIFICATE: traces.ca_file: names a file that cannot be read: there is no such file; the authorities of the system are used instead
        environment OTEL_TRACES_SAMPLER: traces.endpoint: OTEL_TRACES_SAMPLER has no effect: every rollout is traced
        environment OTEL_EXPORTER_OTLP_ENDPOINT: traces.endpoint: is sent traces.headers without TLS: every program on the way can read them; use https
        environment OTEL_EXPORTER_OTLP_ENDPOINT: traces.endpoint: has no effect: a dry run sends nothing
    "#]].assert_eq(&lines(given.map(warned)));
}

#[test]
fn no_header_is_shown_wherever_it_is_given_and_whatever_is_wrong_with_it() {
    let file = "[traces]\nendpoint = \"https://c\"\nheaders = [\"x-token=hunter2\"]\n";
    for (files, variables) in [
        (vec![("c.toml", file)], vec![]),
        (vec![], vec![(ENDPOINT, "https://c"), (HEADERS, "x-token=hunter2")]),
        (vec![], vec![("ALLCLEAR__TRACES__HEADERS", "x-token=hunter2")]),
    ] {
        let loaded = load_with(&files, &variables, &[]).unwrap();
        let shown = format!("{}{}{loaded:?}", loaded.effective.table(), loaded.effective.json());
        assert!(!shown.contains("hunter2") && shown.contains("x-token=•••"), "{shown}");
    }
    for broken in ["hunter2", "a=hunter2%", "content-type=hunter2", "b c=hunter2", "a=hunter2%0A", "=hunter2"] {
        let found = problems(&[], &[("ALLCLEAR__TRACES__HEADERS", broken)]).join("\n");
        assert!(found.contains("traces.headers: has an item that ") && !found.contains("hunter2"), "{broken}: {found}");
    }
}

#[test]
fn what_is_no_attribute_or_certificate_is_refused() {
    let given = [
        ("ALLCLEAR__TRACES__ATTRIBUTES", "a b=c"),
        ("ALLCLEAR__TRACES__ATTRIBUTES", "a"),
        ("ALLCLEAR__TRACES__ENDPOINT", "collector:4318"),
        ("ALLCLEAR__TRACES__CA_FILE", "/none"),
    ];
    expect![[r#"
        environment ALLCLEAR__TRACES__ATTRIBUTES: traces.attributes: has an item that has no name of an attribute; fix: write name=value, such as deployment.environment.name=production
        environment ALLCLEAR__TRACES__ATTRIBUTES: traces.attributes: has an item that has no = in it; fix: write name=value, with %20 for a blank and %2C for a comma
        environment ALLCLEAR__TRACES__ENDPOINT: traces.endpoint: is not an http or https URL; fix: write an absolute URL such as https://example.com/path
        environment ALLCLEAR__TRACES__CA_FILE: traces.ca_file: names a file that cannot be read: there is no such file; fix: mount the certificates there, or leave traces.ca_file empty
    "#]].assert_eq(&lines(given.into_iter().flat_map(|one| problems(&[], &[one]))));
}
