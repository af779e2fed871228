//! Where spans are sent: by our own keys, by the variables of OpenTelemetry, and nowhere; and that no header is shown.

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
    for (given, words) in [
        (vec![(ENDPOINT, "http://c:4317")], "has the port of OTLP over gRPC"),
        (vec![(ENDPOINT, "collector:4317"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], "asks for gRPC"),
        (
            vec![(ENDPOINT, "collector:4317")],
            "nothing is traced, because OTEL_EXPORTER_OTLP_ENDPOINT is no http or https URL",
        ),
        (
            vec![address, (HEADERS, "hunter2")],
            "nothing is traced, because OTEL_EXPORTER_OTLP_HEADERS is no list of name=value",
        ),
        (vec![address, ("OTEL_RESOURCE_ATTRIBUTES", "a=%")], "OTEL_RESOURCE_ATTRIBUTES is not used"),
        (
            vec![address, ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere.pem")],
            "names a file that cannot be read: there is no such file; the authorities of the system are used instead",
        ),
        (
            vec![address, ("OTEL_TRACES_SAMPLER", "always_off")],
            "OTEL_TRACES_SAMPLER has no effect: every rollout is traced",
        ),
        (vec![address, (HEADERS, "a=b")], "without TLS"),
        (vec![address, ("ALLCLEAR__DRY_RUN", "true")], "has no effect: a dry run sends nothing"),
    ] {
        assert!(warned(&given).contains(words), "{given:?}: {}", warned(&given));
    }
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
    for (name, value, words) in [
        ("ALLCLEAR__TRACES__ATTRIBUTES", "a b=c", "traces.attributes: has an item that has no name of an attribute"),
        ("ALLCLEAR__TRACES__ATTRIBUTES", "a", "traces.attributes: has an item that has no = in it"),
        ("ALLCLEAR__TRACES__ENDPOINT", "collector:4318", "traces.endpoint: is not an http or https URL"),
        ("ALLCLEAR__TRACES__CA_FILE", "/none", "traces.ca_file: names a file that cannot be read"),
    ] {
        let found = problems(&[], &[(name, value)]).join("\n");
        assert!(found.contains(words), "{found}");
    }
}
