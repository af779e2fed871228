//! What a Repo says about its outputs, checked.
//!
//! Not for their values.

use std::collections::BTreeSet;

use objects::repo::outputs::{NAMES_MAX, Outputs, is_key};
use objects::repo::spec::Steps;

use super::super::checks::{InvalidSpec, at_most, invalid, object_name};
use super::raw_spec as raw;

/// What the preset Terraform runs to say what the outputs are. With `exec`, a signal reaches Terraform.
pub const OUTPUT: &str = "exec terraform output -json > /workspace/out/outputs.json";

/// The outputs of a spec that has these steps.
pub fn outputs(raw: Option<&raw::Outputs>, steps: &Steps) -> Result<Option<Outputs>, InvalidSpec> {
    let Some(raw::Outputs { secret_ref, names }) = raw else { return Ok(None) };
    object_name(&secret_ref.name, "outputs.secretRef.name")?;
    at_most(NAMES_MAX, names.len(), "outputs.names")?;
    if names.is_empty() {
        return invalid("outputs.names is empty, and nothing would be written");
    }
    let mut seen = BTreeSet::new();
    for name in names {
        if !is_key(name) {
            return invalid(format!("outputs.names: {name:?} is no key that a Secret can have and a pod can mount"));
        }
        if !seen.insert(name) {
            return invalid(format!("outputs.names has {name} twice"));
        }
    }
    if steps.output.is_empty() {
        return invalid("runner.steps.output is missing, which outputs needs: it says what they are");
    }
    Ok(Some(Outputs { secret: secret_ref.name.clone(), names: names.clone() }))
}
