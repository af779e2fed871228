//! What stands in the body of a request: an object, or a patch and its form.

use bytes::Bytes;
use serde_json::{Value, json};

use super::failure::Failure;
use super::object::text;
use super::write::PatchForm;
use crate::http::Request;

pub(super) const JSON: &str = "application/json";

/// The object in the body of a create or update, checked to be of this version and kind, and to belong into this namespace
/// and to have this name (empty: any).
pub(super) fn body(
    request: &Request,
    (expected_version, expected_kind): (&str, &str),
    in_namespace: &str,
    named: &str,
) -> Result<Value, Failure> {
    let content_type = request.header("content-type").unwrap_or(JSON);
    if content_type.split(';').next().unwrap_or_default().trim() != JSON {
        return Err(Failure::unsupported_media(JSON));
    }
    let mut object = parse(&request.body)?;
    let (api_version, kind) = (text(&object, "/apiVersion"), text(&object, "/kind"));
    if kind.is_empty() {
        return Err(Failure::bad_request("Object 'Kind' is missing in the body of the request"));
    }
    if kind != expected_kind || api_version != expected_version {
        let why = format!(
            "the API version in the data ({api_version}, {kind}) does not match the expected ({expected_version}, \
             {expected_kind})"
        );
        return Err(Failure::bad_request(why));
    }
    let (namespace, name) = (text(&object, "/metadata/namespace"), text(&object, "/metadata/name"));
    if !namespace.is_empty() && !in_namespace.is_empty() && namespace != in_namespace {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Failure::bad_request(why));
    }
    if !named.is_empty() && name != named {
        let why = format!("the name of the object ({name}) does not match the name on the URL ({named})");
        return Err(Failure::bad_request(why));
    }
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    Ok(object)
}

/// How a patch is written, by its content type.
pub(super) fn patch_form(request: &Request) -> Result<PatchForm, Failure> {
    let content_type = request.header("content-type").unwrap_or_default();
    Ok(match content_type.split(';').next().unwrap_or_default().trim() {
        "application/merge-patch+json" => PatchForm::Merge,
        "application/strategic-merge-patch+json" => PatchForm::Strategic,
        "application/json-patch+json" => PatchForm::Operations,
        "application/apply-patch+yaml" => PatchForm::Apply,
        _ => {
            return Err(Failure::unsupported_media(
                "application/json-patch+json, application/merge-patch+json, \
                 application/strategic-merge-patch+json, application/apply-patch+yaml",
            ));
        }
    })
}

pub(super) fn parse(body: &Bytes) -> Result<Value, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::bad_request(format!("couldn't get version/kind; json parse error: {error}")))
}
