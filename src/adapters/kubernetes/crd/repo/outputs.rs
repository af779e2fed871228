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

#[cfg(test)]
mod tests {
    use super::super::super::raw_spec::SecretRef;
    use super::*;

    fn of(secret: &str, names: &[&str], steps: &Steps) -> Result<Option<Outputs>, InvalidSpec> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        outputs(Some(&raw::Outputs { secret_ref: SecretRef { name: secret.to_owned() }, names }), steps)
    }

    #[test]
    fn outputs_that_cannot_be_written_are_refused_in_words() {
        let steps = Steps { output: vec!["tool".to_owned()], ..Steps::default() };
        let many = vec!["a"; NAMES_MAX + 1];
        let wrong = [
            (of("", &["a"], &steps), "outputs.secretRef.name"),
            (of("A", &["a"], &steps), "outputs.secretRef.name"),
            (of("a", &[], &steps), "is empty"),
            (of("a", &["a", "b", "a"], &steps), "has a twice"),
            (of("a", &["a/b"], &steps), "\"a/b\" is no key"),
            (of("a", &many, &steps), "50 at most"),
            (of("a", &["a"], &Steps::default()), "runner.steps.output is missing"),
        ];
        for (found, words) in wrong {
            let InvalidSpec(why) = found.unwrap_err();
            assert!(why.contains(words), "{why}");
        }
        let right = Outputs { secret: "a.b".to_owned(), names: vec!["b".to_owned(), "a-A_1.x".to_owned()] };
        assert_eq!(of("a.b", &["b", "a-A_1.x"], &steps).unwrap(), Some(right));
        assert_eq!(outputs(None, &Steps::default()).unwrap(), None);
    }
}
