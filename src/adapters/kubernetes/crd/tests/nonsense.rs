//! Nonsense for the schema of the CRD: objects that follow it here and break it there (fault PF11). Whatever a spec says, the object
//! is read, with what is wrong in it; and whatever can be read, its machine breaks no promise over it, and what it writes is read
//! again. A status that cannot be read is refused in words that say what to do.

use std::time::Duration;

use kernel::id::{PipelineId, RepoId};
use kernel::machine::{Machine, Timestamp};
use objects::owned::{Effect as Own, Event as Life, OwnMachine};
use objects::pipeline::freezes::Freezes;
use objects::pipeline::spec::Object;
use objects::pipeline::{Effect, Event, Pipeline};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::repo::{self, Installation};
use super::super::{CRD, CRD_WEAVE, object, written};
use super::{SPEC, STATUS};

/// Pieces of meaningless strings.
const TEXTS: [&str; 27] = [
    "",
    " ",
    "web",
    "prod",
    "a/b:c",
    "../../secrets",
    "\u{0}\u{7f}\u{202e}",
    "Ünïcode 🚀",
    "30m",
    "-1s",
    "99999999999999999999d",
    "1h30",
    "24:00",
    "25:61",
    "09:00",
    "2026-12-20T00:00:00Z",
    "-009999-01-01T00:00:00Z",
    "2026-13-40T99:99:99+99:99",
    "Europe/Nowhere",
    "https://",
    "https://[::1]:99999/%zz",
    "http://169.254.169.254/",
    "/spec/~2/~",
    "{{ .Values.tag }}",
    "null",
    "-x..y.lock/",
    "ssh://git@git.example.com/a/b",
];

/// A generator that a seed decides: <https://prng.di.unimi.it/splitmix64.c>.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()].clone()
    }

    fn text(&mut self) -> String {
        let text = self.one(&TEXTS).to_owned();
        if self.below(40) == 0 { text.repeat(3_000) } else { text }
    }

    fn number(&mut self) -> Value {
        self.one(&[json!(0), json!(1), json!(-1), json!(i64::MAX), json!(i64::MIN), json!(1.5)])
    }

    fn anything(&mut self) -> Value {
        match self.below(6) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => self.number(),
            3 => json!(self.text()),
            4 => json!([self.text(), self.number()]),
            _ => json!({self.text(): self.number()}),
        }
    }

    /// A value that mostly is what the schema says; in `wrong` of a hundred places it is not.
    fn value(&mut self, schema: &Value, wrong: u64) -> Value {
        if self.below(100) < wrong {
            return self.anything();
        }
        match schema["type"].as_str().unwrap_or_default() {
            "object" => self.object(schema, wrong),
            "array" => {
                let length = if self.below(50) == 0 { 60 } else { self.below(4) };
                (0..length).map(|_| self.value(&schema["items"], wrong)).collect()
            }
            "boolean" => json!(self.below(2) == 0),
            "integer" => self.number(),
            _ => match schema["enum"].as_array() {
                Some(choices) => self.one(choices),
                None if schema["format"] == "date-time" && self.below(4) > 0 => json!("2026-12-20T00:00:00Z"),
                None if self.below(4) == 0 => json!("0123456789abcdef0123456789abcdef01234567"),
                None if self.below(2) == 0 => json!(format!("n{}", self.below(3))),
                None => json!(self.text()),
            },
        }
    }

    fn object(&mut self, schema: &Value, wrong: u64) -> Value {
        let mut object = Map::new();
        if let Some(entries) = schema.get("additionalProperties") {
            for name in ["staging", "prod"] {
                object.insert(name.to_owned(), self.value(entries, wrong));
            }
        }
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let is_needed = required.iter().any(|one| one == name) && self.below(100) >= wrong;
            if is_needed || self.below(3) == 0 {
                object.insert(name.clone(), self.value(schema, wrong));
            }
        }
        if self.below(100) < wrong {
            object.insert(self.text(), self.anything());
        }
        Value::Object(object)
    }
}

/// The schema at a place of a CRD.
fn schema(crd: &str, place: &str) -> Value {
    let crd: Value = serde_saphyr::from_str(crd).unwrap();
    crd.pointer(place).unwrap().clone()
}

fn document(spec: &Value, status: &Value) -> String {
    let metadata = json!({"namespace": "shop", "name": "web", "uid": "u", "generation": 1, "resourceVersion": "1"});
    json!({"metadata": metadata, "spec": spec, "status": status}).to_string()
}

/// Lets the machine of an object live for a day in which everything that it asks for fails, but its status is stored.
fn live(subject: Object) -> Result<(), TestCaseError> {
    let mut machine = Pipeline::new(1_700_000_000_000, subject);
    let mut now = Timestamp::from_millis(0);
    let mut events = vec![Event::Frozen(Freezes::none()), Event::PeersRestarted];
    for round in 0..60_u64 {
        let effects = match events.pop() {
            Some(event) => machine.step_and_catch_up(now, event),
            None => {
                let Some(due) = machine.next_deadline() else { break };
                now = now.max(due).after(Duration::from_millis(1));
                machine.tick(now)
            }
        };
        for effect in effects {
            prop_assert_eq!(machine.breaks(&effect), [], "{:?}", effect);
            match effect {
                Effect::Object(Own::Store(status, _)) => {
                    let stored = Object { status: *status, ..machine.object().clone() };
                    let json = written(&stored).unwrap();
                    let again = object(&document(&Value::Null, &json)).map_err(TestCaseError::fail)?;
                    prop_assert_eq!(&again.status, &stored.status, "what is written is read");
                    events.push(Event::Object(Life::Stored { version: format!("v{round}"), whole: true }));
                }
                Effect::Object(Own::Tell(notice)) => events.push(Event::Object(Life::Told(notice.id))),
                Effect::Recheck(environment, seq, _) => {
                    events.push(Event::RecheckFailed(environment, seq, "no".to_owned()));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    // Faults: PF11
    #[test]
    fn whatever_a_spec_says_the_object_is_there_and_what_is_wrong_is_said(seed in any::<u64>(), wrong in 0_u64..12) {
        let crd = if seed % 2 == 0 { CRD } else { CRD_WEAVE };
        let spec = Dice(seed).value(&schema(crd, SPEC), wrong);
        let read = object(&document(&spec, &json!({"observedGeneration": -1}))).map_err(TestCaseError::fail)?;
        prop_assert_eq!(&read.id, &PipelineId::new("shop", "web"));
        if let Err(why) = &read.spec {
            prop_assert!(!why.is_empty() && why.len() <= 1024 && !why.contains('\n'), "{:?}", why);
        }
        live(read)?;
    }

    // Faults: PF11
    #[test]
    fn whatever_a_status_says_it_is_read_or_refused_with_what_to_do(seed in any::<u64>(), wrong in 0_u64..12) {
        let mut dice = Dice(seed);
        let spec = dice.value(&schema(CRD, SPEC), 0);
        let status = dice.value(&schema(CRD, STATUS), wrong);
        match object(&document(&spec, &status)) {
            Ok(read) => live(read)?,
            Err(why) => prop_assert!(why.contains("its status: ") && why.contains("--subresource=status"), "{}", why),
        }
    }

    #[test]
    fn whatever_a_repo_says_it_is_there_or_refused_in_words_and_what_was_read_is_written_again(
        seed in any::<u64>(), wrong in 0_u64..12,
    ) {
        let mut dice = Dice(seed);
        let spec = dice.value(&schema(repo::CRD, SPEC), wrong);
        let status = dice.value(&schema(repo::CRD, STATUS), if seed % 2 == 0 { 0 } else { wrong });
        let read = |status: &Value| repo::object(&document(&spec, status), &Installation::default());
        let without = read(&Value::Null).map_err(TestCaseError::fail)?;
        prop_assert_eq!(&without.id, &RepoId::new("shop", "web"));
        if let Err(why) = &without.spec {
            prop_assert!(!why.is_empty() && why.len() <= 1024 && !why.contains('\n'), "{:?}", why);
        }
        match read(&status) {
            Ok(first) => {
                let again = read(&repo::written(&first).unwrap()).map_err(TestCaseError::fail)?;
                prop_assert_eq!(&again.status, &first.status);
            }
            Err(why) => prop_assert!(why.contains("its status: ") && why.contains("--subresource=status"), "{}", why),
        }
    }
}

/// For a real API server: `cargo test --lib crd::tests::nonsense -- --ignored --nocapture | grep '^{' | kubectl create -f -`.
/// Each is refused by it, or is read here.
#[test]
#[ignore = "prints objects for a real API server"]
fn a_sample_for_a_real_server() {
    for seed in 0..150 {
        let spec = Dice(seed).value(&schema(CRD, SPEC), seed % 8);
        let metadata = json!({"namespace": "nonsense", "name": format!("n{seed}")});
        println!(
            "{}",
            json!({"apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline", "metadata": metadata, "spec": spec})
        );
    }
}
