//! What an operator says of an object, in CEL: `self.status.readyReplicas == self.spec.replicas`.
//! <https://kubernetes.io/docs/reference/using-api/cel/>
//!
//! It takes a bounded number of steps, whatever the object says: an expression is short and not nested deeply, looks through lists one
//! within no other, makes none, and an object of more than [`VALUES_MAX`] values is not looked at.
//!
//! Not for what follows from it; nothing of an object is repeated but names of fields.

use std::fmt;
use std::sync::Arc;

use cel::common::ast::{EntryExpr, Expr};
use cel::objects::{Key, Map, Value};
use cel::{Context, ExecutionError, IdedExpr, Program};
use serde_json::Value as Json;

use crate::text::clean;

/// Bytes of an expression at most. With [`VALUES_MAX`] it takes two million steps at most.
pub const EXPRESSION_BYTES_MAX: usize = 512;

/// How heavy an expression is at most: its operators, and four for each bracket that is within others. Measured without optimisation,
/// the parser takes 64 KiB of stack for each at most, and a thread of ours has 2 MiB.
const WEIGHT_MAX: usize = 24;

/// Values of an object at most, those in lists and maps included. A pod template of twenty containers has a thousand.
pub const VALUES_MAX: usize = 4_096;

/// Bytes of its texts at most.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Longest name of a field that is repeated.
const FIELD_BYTES_MAX: usize = 64;

pub struct Expression {
    text: String,
    program: Program,
}

/// Why a text is no expression that can be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnExpression {
    #[error("has more than {EXPRESSION_BYTES_MAX} bytes")]
    TooLong,
    #[error(
        "weighs {0} and may weigh {WEIGHT_MAX}: one for each operator, four for each level of brackets; split it, or say less"
    )]
    TooHeavy(usize),
    #[error("is no CEL expression: {0}")]
    Syntax(String),
    #[error("looks through a list within another one")]
    TwoLists,
    #[error("makes a list or a map, by map() or filter()")]
    Makes,
    #[error("names {0:?}; an object is self")]
    Unknown(String),
}

/// Why nobody can say whether an expression holds for an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotJudged {
    #[error("it has more than {VALUES_MAX} values, or {} KiB of text", TEXT_BYTES_MAX / 1024)]
    TooLarge,
    #[error("it is neither true nor false")]
    NoAnswer,
    #[error("there is no {0}")]
    NoSuchField(String),
    #[error("a value is of another type than is wanted there")]
    OfAnotherType,
}

impl Expression {
    /// Reads an expression over `self`.
    ///
    /// # Errors
    /// Why it cannot be taken, in words.
    pub fn parse(text: &str) -> Result<Self, NotAnExpression> {
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(NotAnExpression::TooLong);
        }
        if weight(text) > WEIGHT_MAX {
            return Err(NotAnExpression::TooHeavy(weight(text)));
        }
        let program = Program::compile(text).map_err(|errors| NotAnExpression::Syntax(syntax(&errors)))?;
        judge(program.expression(), 0)?;
        let references = program.references();
        let mut unknown = references
            .variables()
            .into_iter()
            .filter(|name| *name != "self" && !is_of_a_loop(program.expression(), name));
        if let Some(name) = unknown.next() {
            return Err(NotAnExpression::Unknown(clean(name, FIELD_BYTES_MAX)));
        }
        Ok(Self { text: text.to_owned(), program })
    }

    /// Whether it holds for an object.
    ///
    /// # Errors
    /// Why nobody can say.
    pub fn holds(&self, object: &Json) -> Result<bool, NotJudged> {
        let mut room = Room { values: VALUES_MAX, bytes: TEXT_BYTES_MAX };
        let object = room.taken(object).ok_or(NotJudged::TooLarge)?;
        let mut context = Context::default();
        context.add_variable_from_value("self", object);
        match self.program.execute(&context) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(_) => Err(NotJudged::NoAnswer),
            Err(ExecutionError::NoSuchKey(name)) => Err(NotJudged::NoSuchField(clean(&name, FIELD_BYTES_MAX))),
            // Their words repeat values.
            Err(_) => Err(NotJudged::OfAnotherType),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.text).finish()
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

/// Its first error alone, on one line.
fn syntax(errors: &cel::ParseErrors) -> String {
    const WORDS_BYTES_MAX: usize = 200;
    errors.errors.first().map_or_else(String::new, |error| clean(&error.msg, WORDS_BYTES_MAX))
}

/// How heavy it is, judged by its characters, before anything parses it; those of a text in it count, too.
fn weight(text: &str) -> usize {
    const BRACKET: usize = 4;
    /// Selections, and `&&` and `||`, that weigh as much as one operator.
    const LIGHT: usize = 16;
    let (mut open, mut most, mut heavy, mut light) = (0_usize, 0_usize, 0_usize, 0_usize);
    let mut before = ' ';
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => open = open.saturating_add(1),
            ')' | ']' | '}' => open = open.saturating_sub(1),
            '.' | '&' | '|' => light = light.saturating_add(1),
            // `==`, `<=`
            '=' if matches!(before, '=' | '!' | '<' | '>') => {}
            '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' | '?' => heavy = heavy.saturating_add(1),
            _ => {}
        }
        heavy = heavy.saturating_add(usize::from(c == '['));
        most = most.max(open);
        before = c;
    }
    let within = text.matches(" in ").count();
    most.saturating_mul(BRACKET).saturating_add(heavy).saturating_add(within).saturating_add(light / LIGHT)
}

/// Holds an expression to its bounds.
fn judge(at: &IdedExpr, lists: usize) -> Result<(), NotAnExpression> {
    let all = |parts: &[&IdedExpr], lists| parts.iter().try_for_each(|part| judge(part, lists));
    match &at.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Ok(()),
        Expr::Call(call) => {
            call.target.iter().map(|target| &**target).chain(&call.args).try_for_each(|part| judge(part, lists))
        }
        Expr::Select(select) => judge(&select.operand, lists),
        Expr::List(list) => list.elements.iter().try_for_each(|part| judge(part, lists)),
        Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => all(&[&entry.key, &entry.value], lists),
            EntryExpr::StructField(field) => judge(&field.value, lists),
        }),
        Expr::Struct(_) => Err(NotAnExpression::Makes),
        Expr::Comprehension(_) if lists > 0 => Err(NotAnExpression::TwoLists),
        Expr::Comprehension(each) => {
            if matches!(each.accu_init.expr, Expr::List(_) | Expr::Map(_)) {
                return Err(NotAnExpression::Makes);
            }
            let within = lists.saturating_add(1);
            judge(&each.iter_range, lists)?;
            all(&[&each.accu_init, &each.loop_cond, &each.loop_step, &each.result], within)
        }
    }
}

/// Whether a name is what a look through a list calls its items.
fn is_of_a_loop(at: &IdedExpr, name: &str) -> bool {
    match &at.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) => false,
        Expr::Call(call) => {
            call.target.iter().map(|target| &**target).chain(&call.args).any(|part| is_of_a_loop(part, name))
        }
        Expr::Select(select) => is_of_a_loop(&select.operand, name),
        Expr::List(list) => list.elements.iter().any(|part| is_of_a_loop(part, name)),
        Expr::Map(map) => map.entries.iter().any(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => is_of_a_loop(&entry.key, name) || is_of_a_loop(&entry.value, name),
            EntryExpr::StructField(_) => false,
        }),
        Expr::Comprehension(each) => {
            each.iter_var == name
                || each.accu_var == name
                || each.iter_var2.as_deref() == Some(name)
                || is_of_a_loop(&each.iter_range, name)
        }
    }
}

/// What is left of the bounds of an object.
struct Room {
    values: usize,
    bytes: usize,
}

impl Room {
    fn taken(&mut self, json: &Json) -> Option<Value> {
        self.values = self.values.checked_sub(1)?;
        Some(match json {
            Json::Null => Value::Null,
            Json::Bool(flag) => Value::Bool(*flag),
            // As Kubernetes' CEL has them: a whole number is an int.
            Json::Number(number) => match number.as_i64() {
                Some(whole) => Value::Int(whole),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::String(Arc::new(self.text(text)?)),
            Json::Array(items) => {
                Value::List(Arc::new(items.iter().map(|item| self.taken(item)).collect::<Option<Vec<_>>>()?))
            }
            Json::Object(fields) => {
                let mut pairs = Vec::with_capacity(fields.len());
                for (name, value) in fields {
                    // Absent and null mean the same, as everywhere in Kubernetes.
                    if !value.is_null() {
                        pairs.push((Key::String(Arc::new(self.text(name)?)), self.taken(value)?));
                    }
                }
                Value::Map(Map { map: Arc::new(pairs.into_iter().collect()) })
            }
        })
    }

    fn text(&mut self, text: &str) -> Option<String> {
        self.bytes = self.bytes.checked_sub(text.len())?;
        Some(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn holds(text: &str, object: &Json) -> Result<bool, String> {
        Expression::parse(text).map_err(|why| why.to_string())?.holds(object).map_err(|why| why.to_string())
    }

    fn refused(text: &str) -> String {
        Expression::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn it_is_true_or_false_or_says_why_it_is_neither() {
        let object = json!({
            "spec": {"replicas": 3, "password": "s3cr3t"},
            "status": {"ready": 3, "share": 0.5, "phase": "Up", "none": null, "conditions": [
                {"type": "Synced", "status": "True"}, {"type": "Ready", "status": "False"},
            ]},
        });
        for (text, expected) in [
            ("self.status.ready == self.spec.replicas", Ok(true)),
            ("self.status.ready + 1 > self.spec.replicas - 1 && self.status.share < 0.6", Ok(true)),
            ("self.status.phase in ['Down', 'Gone']", Ok(false)),
            ("self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", Ok(false)),
            ("self.status.conditions.exists(c, c.type == 'Synced' && c.status == 'True')", Ok(true)),
            ("has(self.status.missing) || has(self.status.none)", Ok(false)),
            ("self.status.missing == 3", Err("there is no missing")),
            ("self.status.none == 3", Err("there is no none")),
            ("self.status.ready", Err("it is neither true nor false")),
            ("self.status.phase + 1 == 2", Err("a value is of another type than is wanted there")),
            ("self.spec.password > 3", Err("a value is of another type than is wanted there")),
            ("1 / 0 == 1", Err("a value is of another type than is wanted there")),
        ] {
            assert_eq!(holds(text, &object), expected.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn what_could_take_many_steps_is_refused_in_words() {
        for (text, why) in [
            ("self.a.all(x, self.b.all(y, x == y))", "looks through a list within another one"),
            ("size(self.a.map(x, self.a)) > 0", "makes a list or a map, by map() or filter()"),
            ("self.a.filter(x, x > 1) == []", "makes a list or a map, by map() or filter()"),
            ("object.a == 1", "names \"object\"; an object is self"),
            ("self.a.exists(x, y == 1)", "names \"y\"; an object is self"),
        ] {
            assert_eq!(refused(text), why, "{text}");
        }
        assert_eq!(refused(&format!("self.{} == 1", "a".repeat(EXPRESSION_BYTES_MAX))), "has more than 512 bytes");
        assert!(refused("self.a ==").starts_with("is no CEL expression: "));
        for (heavy, weight) in [("(", 28), ("!", 7), ("1 + ", 7)] {
            let text = format!("{}true", heavy.repeat(7));
            assert_eq!(super::weight(&text), weight, "{text}");
        }
        let heavy = refused(&format!("1{} == 1", "+1".repeat(WEIGHT_MAX)));
        assert_eq!(
            heavy,
            "weighs 25 and may weigh 24: one for each operator, four for each level of brackets; split it, or say less"
        );
    }

    #[test]
    fn an_object_that_is_too_large_is_not_judged() {
        let of = |items: usize| json!({"a": vec![1; items]});
        assert_eq!(holds("self.a.all(x, x == 1)", &of(VALUES_MAX - 2)), Ok(true));
        assert!(
            holds("self.a.all(x, x == 1)", &of(VALUES_MAX)).unwrap_err().starts_with("it has more than 4096 values")
        );
        assert!(holds("true", &json!({"a": "x".repeat(TEXT_BYTES_MAX)})).is_err());
    }

    #[test]
    fn the_heaviest_expression_needs_less_stack_than_a_thread_has() {
        let brackets = WEIGHT_MAX / 4;
        let chain = |first: &str, part: &str, times: usize| first.to_owned() + &part.repeat(times);
        let heaviest = [
            format!("{}self{}", "(".repeat(brackets), ")".repeat(brackets)),
            chain("1", "+1", WEIGHT_MAX),
            chain("1", "==1", WEIGHT_MAX),
            chain("true", "&&true", 80),
            chain("self", ".a", (EXPRESSION_BYTES_MAX - 4) / 2),
            format!("((({}{})))", chain("self", ".a", 64), "+1".repeat(WEIGHT_MAX - 16)),
        ];
        let tried = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(move || {
            let read = heaviest.iter().filter_map(|text| Expression::parse(text).ok());
            read.map(|read| usize::from(read.holds(&json!({})) != Ok(false))).sum::<usize>()
        });
        assert!(tried.unwrap().join().unwrap() >= 4);
    }
}
