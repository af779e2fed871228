//! docs/check.md explains every check, and no other.

use allclear::cli::check::catalog::ALL;

use super::*;

#[test]
fn every_check_has_its_section_with_meaning_reason_and_cure() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/check.md");
    let text = std::fs::read_to_string(path).unwrap();
    let sections: Vec<&str> = text.split("\n### ").skip(1).collect();
    let named: Vec<&str> = sections.iter().map(|section| section.lines().next().unwrap()).collect();
    let ids: Vec<&str> = ALL.iter().map(|check| check.id).collect();
    assert_eq!(named, ids, "in the order of the report");
    for section in sections {
        for part in ["Holds when", "Why:", "Cure:"] {
            assert!(section.contains(part), "{part} is not in: {section}");
        }
    }
}
