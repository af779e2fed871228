//! Answers as CloudFront writes them.

use super::batch::Flaw;
use super::{API_VERSION, Distribution, Invalidation, PAGE_ITEMS_MAX, Status, xml};
use crate::http::{Reply, Request};

pub(super) const CONTENT_TYPE: &str = "text/xml";

/// The service sends a different one each time; nothing here uses it.
const REQUEST_ID: &str = "00000000-0000-0000-0000-000000000000";

pub(super) fn error(status: u16, code: &str, message: &str) -> Reply {
    let origin = if status < 500 { "Sender" } else { "Receiver" };
    let error = format!("{}{}{}", xml::text("Type", origin), xml::text("Code", code), xml::text("Message", message));
    let content = format!("{}{}", xml::element("Error", &error), xml::text("RequestId", REQUEST_ID));
    Reply::full(status, CONTENT_TYPE, xml::document("ErrorResponse", &content)).header("x-amzn-requestid", REQUEST_ID)
}

/// The answer to GetCallerIdentity of STS, which needs no right.
pub(super) fn caller_identity() -> Reply {
    let arn = "arn:aws:sts::123456789012:assumed-role/allclear/stand-in";
    let result = format!(
        "{}{}{}",
        xml::text("Arn", arn),
        xml::text("UserId", "AROASTANDIN:stand-in"),
        xml::text("Account", "123456789012")
    );
    let metadata = xml::element("ResponseMetadata", &xml::text("RequestId", REQUEST_ID));
    let content = format!("{}{metadata}", xml::element("GetCallerIdentityResult", &result));
    Reply::full(200, CONTENT_TYPE, xml::document("GetCallerIdentityResponse", &content))
}

/// The answer to CreateInvalidation, also when the invalidation is an earlier one.
pub(super) fn created(shown: &Invalidation, create_time: &str) -> Reply {
    let Invalidation { distribution, id, .. } = shown;
    let kind = if distribution.starts_with("dt_") { "distribution-tenant" } else { "distribution" };
    let location = format!("https://cloudfront.amazonaws.com/{API_VERSION}/{kind}/{distribution}/invalidation/{id}");
    invalidation(201, shown, create_time).header("location", location)
}

pub(super) fn invalidation(status: u16, shown: &Invalidation, create_time: &str) -> Reply {
    let batch = format!(
        "{}{}",
        xml::list("Paths", "Path", shown.paths.iter().map(String::as_str)),
        xml::text("CallerReference", &shown.reference)
    );
    let content = format!(
        "{}{}{}{}",
        xml::text("Id", &shown.id),
        xml::text("Status", status_name(shown.status)),
        xml::text("CreateTime", create_time),
        xml::element("InvalidationBatch", &batch)
    );
    Reply::full(status, CONTENT_TYPE, xml::document("Invalidation", &content))
}

/// One page of (marker, item) pairs. As in the real service a marker is the id of the last item of the page before.
pub(super) fn page(request: &Request, items_max: usize, root: &str, all: &[(&str, String)]) -> Reply {
    let query = |key: &str| request.query.get(key).map(String::as_str).filter(|value| !value.is_empty());
    let most = items_max.clamp(1, PAGE_ITEMS_MAX);
    let asked = match query("MaxItems").map(str::parse::<usize>) {
        None => most,
        Some(Ok(asked)) if asked > 0 => asked.min(most),
        Some(_) => return error(400, "InvalidArgument", "The parameter MaxItems is not valid."),
    };
    let marker = query("Marker");
    let start = match marker {
        None => 0,
        Some(marker) => match all.iter().position(|(id, _)| *id == marker) {
            Some(position) => position + 1,
            None => return error(400, "InvalidArgument", "The parameter Marker is not valid."),
        },
    };
    let page: Vec<&(&str, String)> = all.iter().skip(start).take(asked).collect();
    let truncated = start + page.len() < all.len();
    let next = page.last().filter(|_| truncated).map(|(id, _)| xml::text("NextMarker", id)).unwrap_or_default();
    let items: String = page.iter().map(|(_, item)| item.as_str()).collect();
    let content = format!(
        "{}{next}{}{}{}{}",
        xml::text("Marker", marker.unwrap_or_default()),
        xml::text("MaxItems", &asked.to_string()),
        xml::text("IsTruncated", if truncated { "true" } else { "false" }),
        xml::text("Quantity", &page.len().to_string()),
        if items.is_empty() { String::new() } else { xml::element("Items", &items) }
    );
    Reply::full(200, CONTENT_TYPE, xml::document(root, &content))
}

pub(super) fn distribution_summary(distribution: &Distribution) -> String {
    let flag = |value: bool| if value { "true" } else { "false" };
    let origins: Vec<String> = distribution
        .origins
        .iter()
        .map(|origin| {
            let (name, path) = origin.split_at(origin.find('/').unwrap_or(origin.len()));
            let path = xml::text("OriginPath", path);
            let fields = format!("{}{}{path}", xml::text("Id", name), xml::text("DomainName", name));
            xml::element("Origin", &fields)
        })
        .collect();
    let arn = format!("arn:aws:cloudfront::123456789012:distribution/{}", distribution.id);
    let fields = [
        xml::text("Id", &distribution.id),
        xml::text("ARN", &arn),
        xml::text("Status", "Deployed"),
        xml::text("LastModifiedTime", "2026-01-01T00:00:00.000Z"),
        xml::text("DomainName", &distribution.domain_name),
        xml::list("Aliases", "CNAME", distribution.aliases.iter().map(String::as_str)),
        xml::list_of("Origins", &origins),
        xml::text("Comment", ""),
        xml::text("PriceClass", "PriceClass_All"),
        xml::text("Enabled", flag(distribution.enabled)),
        xml::text("WebACLId", ""),
        xml::text("HttpVersion", "HTTP2"),
        xml::text("IsIPV6Enabled", "true"),
        xml::text("Staging", flag(distribution.staging)),
        xml::text("ConnectionMode", if distribution.tenant_only { "tenant-only" } else { "direct" }),
    ];
    xml::element("DistributionSummary", &fields.concat())
}

/// As far as it is read: whether there is a CacheTagConfig.
/// <https://docs.aws.amazon.com/cloudfront/latest/APIReference/API_GetDistributionConfig.html>
pub(super) fn distribution_config(distribution: &Distribution) -> Reply {
    let tags = if distribution.cache_tags {
        xml::element("CacheTagConfig", &xml::text("HeaderName", "Cache-Tag"))
    } else {
        String::new()
    };
    let content = [
        xml::text("CallerReference", &distribution.id),
        xml::list("Aliases", "CNAME", distribution.aliases.iter().map(String::as_str)),
        xml::text("Comment", ""),
        xml::text("Enabled", if distribution.enabled { "true" } else { "false" }),
        tags,
    ];
    Reply::full(200, CONTENT_TYPE, xml::document("DistributionConfig", &content.concat())).header("ETag", "E1ETAG")
}

pub(super) fn status_name(status: Status) -> &'static str {
    match status {
        Status::InProgress => "InProgress",
        Status::Completed => "Completed",
    }
}

/// Too many calls: CloudFront answers so with 400, not 429 (aws/aws-sdk-js#3983, mdn/kuma#6177).
pub(super) fn throttled() -> Reply {
    error(400, "Throttling", "Rate exceeded")
}

pub(super) fn no_such_distribution() -> Reply {
    error(404, "NoSuchDistribution", "The specified distribution does not exist.")
}

/// What the operations of distribution tenants say for all that is not there.
pub(super) fn no_such_entity() -> Reply {
    error(404, "EntityNotFound", "The specified entity does not exist.")
}

pub(super) fn batch_flaw(flaw: Flaw) -> Reply {
    let (code, message) = match flaw {
        Flaw::Missing => ("MissingBody", "The request body is missing."),
        Flaw::Malformed => ("MalformedXML", "The XML document is malformed."),
        Flaw::InconsistentQuantities => {
            ("InconsistentQuantities", "The value of Quantity and the size of Items don't match.")
        }
        Flaw::NoPaths => ("InvalidArgument", "Your request must contain at least one invalidation path."),
        Flaw::NoReference => ("InvalidArgument", "The caller reference is missing."),
        Flaw::BadPath => ("InvalidArgument", "Your request contains one or more invalid invalidation paths."),
    };
    error(400, code, message)
}
