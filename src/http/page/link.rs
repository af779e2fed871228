//! Links: to pages of ours, and to CloudFront's console. What is no usual name stays a text.

use maud::{Markup, html};

use crate::http::names::is_name;
use kernel::id::WorkloadId;
use kernel::names::workload_name::WorkloadName;

/// Where pages of workloads are: `/workloads/NAMESPACE/NAME` of a Deployment, `/workloads/NAMESPACE/statefulset/NAME` of another kind.
pub const WORKLOADS: &str = "/workloads/";

/// CloudFront's console in the commercial partition; China has one of its own, to which no link leads.
const CONSOLE: &str = "https://console.aws.amazon.com/cloudfront/v4/home#/distributions/";

/// `shop/web`, or `statefulset/shop/db`, as a link to its page.
pub(super) fn workload(id: &WorkloadId) -> Markup {
    let WorkloadId { namespace, name, .. } = id;
    let words = html! { span.quiet { (before_name(id)) } (name) };
    html! {
        @if is_name(namespace) && is_name(name) {
            a.to href={ (WORKLOADS) (namespace) "/" (WorkloadName::of(id)) } { (words) }
        } @else { (words) }
    }
}

/// What [`WorkloadId::display_name`] has before the name.
pub(super) fn before_name(id: &WorkloadId) -> String {
    id.display_name().strip_suffix(id.name.as_str()).unwrap_or_default().to_owned()
}

/// A distribution, or one invalidation of it, as a link to the console.
pub(super) fn invalidation(distribution: &str, invalidation: Option<&str>) -> Markup {
    let is_id = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    let known = invalidation.filter(|id| is_id(id));
    html! {
        @if is_id(distribution) {
            a href={ (CONSOLE) (distribution) "/invalidations" @if let Some(id) = known { "/details/" (id) } }
                rel="noreferrer noopener" { (distribution) @if let Some(id) = invalidation { " " (id) } }
        } @else { (distribution) @if let Some(id) = invalidation { " " (id) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::id::Kind;

    #[test]
    fn only_usual_names_become_links() {
        let shown = workload(&WorkloadId::deployment("shop", "web")).into_string();
        assert!(shown.contains("href=\"/workloads/shop/web\""), "{shown}");
        let shown = workload(&WorkloadId::new(Kind::StatefulSet, "shop", "web")).into_string();
        assert!(
            shown.contains("href=\"/workloads/shop/statefulset/web\"") && shown.contains(">statefulset/shop/<"),
            "{shown}"
        );
        let tenant = invalidation("dt_2wjDZi3hD1ivOXf6rpZJOSNE1AB", Some("I1")).into_string();
        assert!(!tenant.contains("href"), "where the console has distribution tenants is not documented: {tenant}");
        for hostile in ["../x", "web?y", "<b>", "javascript:alert(1)", ""] {
            assert!(!workload(&WorkloadId::deployment("shop", hostile)).into_string().contains("href"), "{hostile}");
            assert!(!invalidation(hostile, Some("I1")).into_string().contains("href"), "{hostile}");
            let shown = invalidation("E1", Some(hostile)).into_string();
            assert!(shown.contains("distributions/E1/invalidations\""), "{shown}");
        }
        let shown = invalidation("E1", Some("I2")).into_string();
        assert!(shown.contains("#/distributions/E1/invalidations/details/I2\""), "{shown}");
    }
}
