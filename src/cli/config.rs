//! `allclear config show` and `allclear config validate`.
//!
//! Both only compute what is printed; the caller prints it and ends the process.

use serde_json::Value;

use crate::cli::answer::{EXIT_INVALID, Outcome, Output};
use crate::config::{Inputs, Invalid, Loaded, Warning, load};
use kernel::text::visible_json;

/// Shows what is in effect and where each value came from. Nothing is shown of a configuration that is not valid, since
/// none of it would be in effect.
pub fn show(inputs: &Inputs<'_>, output: Output) -> Outcome {
    let Loaded { config: _, effective, in_force: _, warnings } = match load(inputs) {
        Ok(loaded) => loaded,
        Err(invalid) => return refused(&invalid, output),
    };
    let out = match output {
        Output::Table | Output::Drawn(_) | Output::Both => effective.table(),
        Output::Json => line(&effective.json()),
    };
    Outcome { out, err: warned(&warnings), code: 0 }
}

/// Says whether the configuration is valid, and if not, everything that is wrong with it.
pub fn validate(inputs: &Inputs<'_>, output: Output) -> Outcome {
    match load(inputs) {
        Err(invalid) => refused(&invalid, output),
        Ok(loaded) => match output {
            Output::Table | Output::Drawn(_) | Output::Both => {
                let out = "the configuration is valid\n".to_owned();
                Outcome { out, err: warned(&loaded.warnings), code: 0 }
            }
            Output::Json => Outcome { out: line(&loaded.report()), err: String::new(), code: 0 },
        },
    }
}

/// What is printed for a refused configuration; also by `allclear run`.
pub fn refused(invalid: &Invalid, output: Output) -> Outcome {
    match output {
        Output::Table | Output::Drawn(_) | Output::Both => {
            let err = format!("{}error: {invalid}\n", warned(&invalid.warnings));
            Outcome { out: String::new(), err, code: EXIT_INVALID }
        }
        Output::Json => Outcome { out: line(&invalid.report()), err: String::new(), code: EXIT_INVALID },
    }
}

fn warned(warnings: &[Warning]) -> String {
    warnings.iter().map(|warning| format!("warning: {warning}\n")).collect()
}

fn line(value: &Value) -> String {
    visible_json(&format!("{value:#}\n")).into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io;
    use std::path::Path;

    use super::*;

    fn run(command: fn(&Inputs<'_>, Output) -> Outcome, output: Output, variables: &[(&str, &str)]) -> Outcome {
        let pairs = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let read = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let inputs = Inputs {
            file: None,
            environment: pairs.collect(),
            flags: BTreeMap::new(),
            service_account_namespace: None,
            read: &read,
        };
        command(&inputs, output)
    }

    #[test]
    fn show_names_the_layer_of_every_value_and_masks_passwords() {
        let outcome = run(show, Output::Table, &[("REDIS_HOST", "redis://:hunter2@cache")]);
        assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
        let line = |key| outcome.out.lines().find(|line| line.trim().starts_with(key)).unwrap().split_whitespace();
        let shown: Vec<&str> = line("redis.url").collect();
        assert_eq!(shown, ["redis.url", "redis://•••@cache", "environment", "REDIS_HOST"]);
        let shown: Vec<&str> = line("http.listen").collect();
        assert_eq!(shown, ["http.listen", "0.0.0.0:8080", "default"]);
        assert!(!outcome.out.contains("hunter2"));
    }

    #[test]
    fn json_is_one_object_for_programs() {
        let outcome = run(show, Output::Json, &[("LOGLEVEL", "DEBUG")]);
        let shown: Value = serde_json::from_str(&outcome.out).unwrap();
        let level = shown["settings"].as_array().unwrap().iter().find(|setting| setting["key"] == "log.level").unwrap();
        assert_eq!(*level, serde_json::json!({"key": "log.level", "value": "DEBUG", "from": "environment LOGLEVEL"}));
        let outcome = run(validate, Output::Json, &[("LOGLEVEL", "loud")]);
        let report: Value = serde_json::from_str(&outcome.out).unwrap();
        assert_eq!((outcome.code, &report["valid"]), (EXIT_INVALID, &Value::Bool(false)));
        assert_eq!(report["problems"][0]["place"], "environment LOGLEVEL");
    }

    #[test]
    fn a_refused_configuration_lists_every_problem_and_exits_with_2() {
        let outcome =
            run(validate, Output::Table, &[("NAMESPACE", "Shop"), ("REDIS_PORT", "http"), ("LOGLEVEL", "inof")]);
        let expected = "error: the configuration has 3 problems\n  \
            environment LOGLEVEL: log.level: is not a level\n    fix: did you mean info?\n  \
            environment NAMESPACE: watch.namespaces: item 1 is not a namespace\n    \
            fix: write a namespace: lower-case letters, digits and hyphens, 63 at most\n  \
            environment REDIS_PORT: redis.url: has a port that is not a number from 1 to 65535\n    \
            fix: write a port, such as 6379\n";
        assert_eq!(outcome, Outcome { out: String::new(), err: expected.to_owned(), code: EXIT_INVALID });
    }

    #[test]
    fn a_valid_configuration_is_said_to_be_so() {
        let outcome = run(validate, Output::Table, &[]);
        assert_eq!((outcome.out.as_str(), outcome.code), ("the configuration is valid\n", 0));
    }
}
