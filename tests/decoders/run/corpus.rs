//! The files of `fuzz/corpus`.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Bytes of one file of a corpus: small inputs are mutated well, and are looked at by people.
const FILE_BYTES_MAX: usize = 64 * 1024;

/// The folder `fuzz`.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The files of a target, by name.
pub fn of(target: &str) -> BTreeMap<String, Vec<u8>> {
    let Ok(files) = std::fs::read_dir(folder().join("corpus").join(target)) else { return BTreeMap::new() };
    let file = |file: std::fs::DirEntry| {
        (file.file_name().to_string_lossy().into_owned(), std::fs::read(file.path()).unwrap())
    };
    files.map(|found| file(found.unwrap())).collect()
}

/// Files that are too large.
pub fn too_large(corpus: &BTreeMap<String, Vec<u8>>) -> impl Iterator<Item = &String> {
    corpus.iter().filter(|(_, input)| input.len() > FILE_BYTES_MAX).map(|(file, _)| file)
}

/// Folders and programs that are no target's.
pub fn strangers(names: &BTreeMap<String, ()>) -> Vec<String> {
    let listed = |under: &str| {
        let found = std::fs::read_dir(folder().join(under)).unwrap();
        let name = |found: std::fs::DirEntry| found.file_name().to_string_lossy().trim_end_matches(".rs").to_owned();
        let found: Vec<String> = found.map(|found| name(found.unwrap())).collect();
        found
            .into_iter()
            .filter(|name| !names.contains_key(name))
            .map(|name| format!("fuzz/{under}/{name} has no target"))
            .collect::<Vec<_>>()
    };
    [listed("corpus"), listed("fuzz_targets")].concat()
}
