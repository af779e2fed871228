//! The repository's files, and Rust source with what is not code taken out of it.

use std::fs;
use std::path::{Path, PathBuf};

/// What is not ours to judge: made by builds, or by git.
const SKIPPED: [&str; 4] = [".git", ".venv", "target", "proptest-regressions"];

/// One file of the repository.
pub struct File {
    /// From the top of the repository, with `/`.
    pub path: String,
    pub text: String,
}

/// All text files below `under`, sorted; `""` for all of the repository.
pub fn files(under: &str) -> Vec<File> {
    let top = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    collect(&top.join(under), &top, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!found.is_empty(), "there is nothing in {under:?}");
    found
}

/// One file, which must exist.
pub fn file(path: &str) -> File {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
    File { path: path.to_owned(), text: text.unwrap_or_else(|error| panic!("{path}: {error}")) }
}

/// All Rust files below these folders.
pub fn rust(folders: &[&str]) -> Vec<File> {
    folders.iter().flat_map(|folder| files(folder)).filter(|file| file.path.ends_with(".rs")).collect()
}

fn collect(folder: &Path, top: &Path, found: &mut Vec<File>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap().path();
        if SKIPPED.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        if path.is_dir() {
            collect(&path, top, found);
        } else if let Ok(text) = fs::read_to_string(&path) {
            let path = path.strip_prefix(top).unwrap().to_string_lossy().replace('\\', "/");
            found.push(File { path, text });
        }
    }
}

/// The module a line like `pub(crate) mod name;` declares.
pub fn module_of(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("mod ")?;
    let is_declaration = before.is_empty() || before.starts_with("pub");
    rest.strip_suffix(';').filter(|_| is_declaration)
}

impl File {
    /// The code alone: comments and the insides of literals are blanks, every line is where it was.
    pub fn code(&self) -> String {
        blanked(&self.text)
    }

    /// The code that runs in production: without `#[cfg(test)]` modules, and nothing at all of a file that is one, or that only
    /// the feature `testing` switches on.
    pub fn production(&self) -> String {
        let for_tests = ["/tests.rs", "src/domain/purge/testing.rs"].iter().any(|end| self.path.ends_with(end));
        let for_tests = for_tests || ["/tests/", "/testing/"].iter().any(|within| self.path.contains(within));
        if !self.path.starts_with("src/") || for_tests {
            return String::new();
        }
        let code = self.code();
        let mut lines: Vec<&str> = code.lines().collect();
        let mut at = 0;
        while at < lines.len() {
            if lines[at].trim() == "#[cfg(test)]" {
                let end = end_of_block(&lines, at).unwrap_or(at);
                lines[at..=end].fill("");
                at = end;
            }
            at += 1;
        }
        lines.join("\n")
    }

    /// The functions: first line (counted from 1), signature, and all lines with the signature's.
    pub fn functions(&self) -> Vec<Function> {
        let code = self.code();
        let lines: Vec<&str> = code.lines().collect();
        let mut found = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let Some(name) = function_name(line) else { continue };
            // A signature that ends with a semicolon has no body.
            let Some(end) = end_of_block(&lines, at) else { continue };
            let body = lines[at..=end].join("\n");
            let signature = body.split('{').next().unwrap_or_default().to_owned();
            found.push(Function { line: at + 1, lines: end - at + 1, name, signature, body });
        }
        found
    }

    /// The structs of production code with their fields.
    pub fn structs(&self) -> Vec<Struct> {
        let code = self.production();
        let lines: Vec<&str> = code.lines().collect();
        let mut found = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let Some(name) = struct_name(line) else { continue };
            let Some(end) = end_of_block(&lines, at) else { continue };
            let fields = lines[at + 1..=end].iter().filter(|line| is_field(line)).count();
            found.push(Struct { line: at + 1, name, fields });
        }
        found
    }
}

/// A struct with named fields.
pub struct Struct {
    pub line: usize,
    pub name: String,
    pub fields: usize,
}

fn struct_name(line: &str) -> Option<String> {
    let (before, rest) = line.split_once("struct ")?;
    if !["", "pub", "pub(crate)", "pub(super)"].contains(&before.trim()) {
        return None;
    }
    Some(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
}

/// Whether a line of a struct begins a field.
fn is_field(line: &str) -> bool {
    let line = line.trim_start();
    let line = if line.starts_with("pub") { line.split_once(' ').map_or(line, |(_, field)| field) } else { line };
    let end = line.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(line.len());
    end > 0 && line[end..].starts_with(':') && !line[end..].starts_with("::")
}

/// A function with a body.
pub struct Function {
    pub line: usize,
    pub lines: usize,
    pub name: String,
    pub signature: String,
    pub body: String,
}

fn function_name(line: &str) -> Option<String> {
    let (before, rest) = line.split_once("fn ")?;
    let words = ["pub", "pub(crate)", "pub(super)", "const", "async", "unsafe", "extern"];
    if !before.split_whitespace().all(|word| words.contains(&word)) {
        return None;
    }
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// The line of the brace that closes the first one opened at or after `from`; `None` where a `;` outside of brackets comes
/// first.
fn end_of_block(lines: &[&str], from: usize) -> Option<usize> {
    let (mut braces, mut brackets) = (0_i32, 0_i32);
    for (at, line) in lines.iter().enumerate().skip(from) {
        for character in line.chars() {
            match character {
                '(' | '[' => brackets += 1,
                ')' | ']' => brackets -= 1,
                ';' if braces == 0 && brackets == 0 => return None,
                '{' => braces += 1,
                '}' => {
                    braces -= 1;
                    if braces == 0 {
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
    }
    None
}

/// `text` with comments and the insides of literals replaced by blanks. Line breaks stay.
fn blanked(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at).or_else(|| comment_end(&chars, at));
        let Some(end) = end else {
            out.push(chars[at]);
            at += 1;
            continue;
        };
        out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
        at = end;
    }
    out
}

fn starts(chars: &[char], at: usize, with: &str) -> bool {
    with.chars().enumerate().all(|(offset, c)| chars.get(at + offset) == Some(&c))
}

fn comment_end(chars: &[char], at: usize) -> Option<usize> {
    if starts(chars, at, "//") {
        return Some(chars[at..].iter().position(|c| *c == '\n').map_or(chars.len(), |length| at + length));
    }
    if !starts(chars, at, "/*") {
        return None;
    }
    let (mut depth, mut at) = (0, at);
    while at < chars.len() {
        if starts(chars, at, "/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if starts(chars, at, "*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    Some(at)
}

/// The end of a string, raw string or character that begins here. A lifetime is none of them.
fn literal_end(chars: &[char], at: usize) -> Option<usize> {
    let within_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    if chars[at] == 'r' && (!within_word || (at > 0 && chars[at - 1] == 'b')) {
        let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
        if chars.get(at + 1 + hashes) == Some(&'"') {
            let close: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let inside = at + 2 + hashes;
            let end = (inside..chars.len()).find(|at| starts(chars, *at, &close))?;
            return Some(end + 1 + hashes);
        }
    }
    let quote = chars[at];
    if quote == '\'' {
        // 'x' or '\n' or '\u{1f600}'; anything else is a lifetime or a label.
        let escaped = chars.get(at + 1) == Some(&'\\');
        if !escaped && chars.get(at + 2) != Some(&'\'') {
            return None;
        }
    } else if quote != '"' {
        return None;
    }
    let mut end = at + 1;
    while end < chars.len() && chars[end] != quote {
        end += if chars[end] == '\\' { 2 } else { 1 };
    }
    Some((end + 1).min(chars.len()))
}

#[test]
fn what_is_not_code_is_blanked_and_lines_stay() {
    let text =
        "let a = \"fn {\"; // fn {\nlet b = r#\"} \" {\"#; /* { /* } */\n */ let c = '{'; fn f<'a>(x: &'a str) {\n}\n";
    let code = blanked(text);
    assert_eq!(code.lines().count(), text.lines().count());
    assert!(!code.contains("} \""), "{code}");
    assert_eq!(code.matches('{').count(), 1, "{code}");
    assert!(code.contains("fn f<'a>(x: &'a str) {"), "{code}");
}

#[test]
fn functions_are_measured_and_test_modules_left_out() {
    let text = "fn a(x: [u8; 2]) -> u8 {\n    x[0]\n}\ntrait T {\n    fn b();\n}\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
    let file = File { path: "src/x.rs".to_owned(), text: text.to_owned() };
    let found: Vec<_> = file.functions().into_iter().map(|f| (f.name, f.line, f.lines)).collect();
    assert_eq!(found, [("a".to_owned(), 1, 3), ("c".to_owned(), 9, 1)]);
    assert!(!file.production().contains("fn c"));
    assert!(file.production().contains("fn b"));
}

#[test]
fn fields_are_counted_where_they_begin() {
    let text = "pub(super) struct A<T> {\n    /// a: b\n    pub(super) first: BTreeMap<\n        crate::B,\n        T,\n    >,\n    #[serde(rename = \"s\")]\n    pub second: u8,\n    third: T,\n}\nstruct B(u8);\nstruct C;\n";
    let file = File { path: "src/x.rs".to_owned(), text: text.to_owned() };
    let found: Vec<_> = file.structs().into_iter().map(|found| (found.name, found.line, found.fields)).collect();
    assert_eq!(found, [("A".to_owned(), 1, 3)]);
}
