//! Applies settings from environment variables and flags.
//!
//! `POINTSMAN_SERVER__LISTEN` is `server.listen`: a double underscore separates levels. Names of tenants, handlers,
//! sources and schedules and the paths of chains are matched case-insensitively, with `_` for `-`, `.` and `/`
//! (`/publish/article` is `PUBLISH_ARTICLE`), and only those that the files define can be changed. `…_FILE` names a
//! file that contains the value. A value that begins with `[` or `{` is parsed as YAML, any other is used as text.
//!
//! A `POINTSMAN_` variable that is not a setting is warned about and ignored: container platforms add variables of
//! their own.

use std::path::Path;
use std::sync::Arc;

use super::fault::Findings;
use super::inputs::ConfigFlag;
use super::location::{ConfigText, SettingLocation, SettingOrigin};
use super::merge::override_layer;
use super::schema::{ROOT_KEYS, SettingShape, setting_shape_at};
use super::secrets::{Environment, read_value_file};
use super::yaml::{self, YamlEntry, YamlKind, YamlNode};
use pointsman_core::suggestion::suggest_name;

const VARIABLE_PREFIX: &str = "POINTSMAN_";

/// Variables that are not settings, without the prefix: those of the command line, and those that command handlers get.
const NON_SETTING_VARIABLES: &[&str] = &[
    "URL",
    "TOKEN",
    "TOKEN_FILE",
    "LOG",
    "CONFIG",
    "CONFIG_DIR",
    "EVENT_ID",
    "PREV",
    "PREV_SENT",
    "LATE",
    "TYPE",
    "KEY",
    "ORDER",
    "NODE",
    "TENANT",
    "TASK_ID",
    "ATTEMPT",
    "FENCE",
    "SOURCE",
    "COLLECTION",
    "EFFECTS",
];

/// Overrides the tree with the variables that are settings.
pub(super) fn apply_env(tree: &mut YamlNode, env: &Environment, findings: &mut Findings) {
    for (text_index, (variable, value)) in env.iter().enumerate() {
        let Some(name) = variable.strip_prefix(VARIABLE_PREFIX) else { continue };
        // These are service links of a container platform: the address of a service named `pointsman`, not settings.
        let is_service_link = name.starts_with("SERVICE_") || name == "PORT" || name.starts_with("PORT_");
        if NON_SETTING_VARIABLES.contains(&name) || is_service_link {
            continue;
        }
        let location = |text: &str| {
            SettingLocation::whole_text(&ConfigText::new(
                SettingOrigin::Env(variable.into()),
                text_index,
                text.into(),
            ))
        };
        let (path, from_file) = match find_setting_path(tree, name) {
            Ok(path) => (path, false),
            Err(suggestion) => match name.strip_suffix("_FILE").map(|name| find_setting_path(tree, name)) {
                Some(Ok(path)) => (path, true),
                _ => {
                    let suggestion = suggestion.map_or(String::new(), |suggestion| {
                        format!("; did you mean {VARIABLE_PREFIX}{suggestion}?")
                    });
                    findings
                        .add_warning(&location(""), format!("is not a setting and is ignored{suggestion}"));
                    continue;
                }
            },
        };
        let direct = variable.strip_suffix("_FILE").filter(|direct| from_file && env.get(direct).is_some());
        if let Some(direct) = direct {
            findings.add_fault(&location(""), format!("{direct} is set as well"));
            continue;
        }
        let text = if from_file { read_value_file(Path::new(value)) } else { Ok(value.to_owned()) };
        match text {
            Ok(text) => set_setting_at_path(tree, &path, location(&text).config_text, findings),
            Err(reason) => findings.add_fault(&location(""), format!("the file {value} {reason}")),
        }
    }
}

/// Overrides the tree with the flags.
pub(super) fn apply_flags(tree: &mut YamlNode, flags: &[ConfigFlag], findings: &mut Findings) {
    for (text_index, flag) in flags.iter().enumerate() {
        let config_text =
            ConfigText::new(SettingOrigin::Flag(flag.name.clone()), text_index, flag.value.clone());
        let path: Vec<String> = flag.setting_path.split('.').map(str::to_owned).collect();
        set_setting_at_path(tree, &path, config_text, findings);
    }
}

/// Sets the value at a path of the tree.
fn set_setting_at_path(
    tree: &mut YamlNode,
    path: &[String],
    config_text: Arc<ConfigText>,
    findings: &mut Findings,
) {
    let location = SettingLocation::whole_text(&config_text);
    let mut node = match config_text.text.trim_start().chars().next() {
        Some('[' | '{') => match yaml::parse_yaml(&config_text, findings) {
            Some(node) => node,
            None => return,
        },
        _ => YamlNode::new_unquoted_scalar(location.clone(), config_text.text.clone()),
    };
    for key in path.iter().rev() {
        let entry = YamlEntry { key: key.clone(), key_location: location.clone(), value: node };
        node = YamlNode { kind: YamlKind::Map(vec![entry]), location: location.clone(), end_line: 0 };
    }
    override_layer(tree, node);
}

/// Finds the path of a setting by a variable's name without its prefix. The error is the most similar valid name.
fn find_setting_path(tree: &YamlNode, name: &str) -> Result<Vec<String>, Option<String>> {
    let mut path: Vec<String> = Vec::new();
    let mut current_node = Some(tree);
    let mut matched_prefix = String::new();
    for part in name.split("__") {
        let keys: Vec<&str> = path.iter().map(String::as_str).collect();
        let allowed_names: Vec<&str> = match setting_shape_at(&keys) {
            SettingShape::FixedKeys(keys) => keys.names.to_vec(),
            SettingShape::AuthorNamedMap => {
                current_node.map_or(vec![], |node| node.entries().iter().map(|e| e.key.as_str()).collect())
            }
            SettingShape::Value => return Err(Some(matched_prefix)),
        };
        let Some(key) = allowed_names.iter().find(|key| to_variable_name(key) == part) else {
            let forms: Vec<String> = allowed_names.iter().map(|key| to_variable_name(key)).collect();
            let suggestion = suggest_name(part, forms.iter().map(String::as_str));
            return Err(suggestion
                .map(|suggestion| join_variable_parts(&matched_prefix, suggestion))
                .or_else(|| suggest_double_underscore_name(name)));
        };
        matched_prefix = join_variable_parts(&matched_prefix, part);
        current_node = current_node.and_then(|node| node.get(key));
        path.push((*key).to_owned());
    }
    Ok(path)
}

fn join_variable_parts(matched_prefix: &str, part: &str) -> String {
    if matched_prefix.is_empty() { part.to_owned() } else { format!("{matched_prefix}__{part}") }
}

/// Suggests the setting for a name with single underscores (`SERVER_LISTEN`).
fn suggest_double_underscore_name(name: &str) -> Option<String> {
    let mut all = Vec::new();
    for section in ROOT_KEYS.names {
        if let SettingShape::FixedKeys(keys) = setting_shape_at(&[section]) {
            all.extend(
                keys.names
                    .iter()
                    .map(|key| format!("{}__{}", to_variable_name(section), to_variable_name(key))),
            );
        }
    }
    suggest_name(name, all.iter().map(String::as_str)).map(str::to_owned)
}

fn to_variable_name(key: &str) -> String {
    key.trim_start_matches('/').to_ascii_uppercase().replace(['-', '.', '/'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_yaml_text(text: &str) -> YamlNode {
        let config_text = ConfigText::new(SettingOrigin::File("a.yml".into()), 0, text.into());
        yaml::parse_yaml(&config_text, &mut Findings::default()).unwrap()
    }

    fn parse_with_env(
        text: &str,
        variables: &[(&str, &str)],
    ) -> (YamlNode, Result<Vec<String>, Vec<String>>) {
        let mut tree = parse_yaml_text(text);
        let mut findings = Findings::default();
        apply_env(&mut tree, &variables.iter().copied().collect(), &mut findings);
        let findings = match findings.into_result(Some(()), &tree.location) {
            Ok(((), warnings)) => Ok(warnings.iter().map(ToString::to_string).collect()),
            Err(faults) => Err(faults.iter().map(ToString::to_string).collect()),
        };
        (tree, findings)
    }

    fn find_scalar_text<'n>(tree: &'n YamlNode, path: &[&str]) -> &'n str {
        let node = path.iter().fold(tree, |node, key| node.get(key).unwrap());
        match &node.kind {
            YamlKind::Scalar { text, .. } => text,
            _ => panic!("{node:?}"),
        }
    }

    #[test]
    fn double_underscores_in_variables_address_nested_settings() {
        let (tree, found) = parse_with_env(
            "server: {listen: x}\nhandlers: {my-index: {retry: {max: 1}}}\n\
             sources: {shop: {collections: [a]}}\ntenants: {lab: {}}\n",
            &[
                ("POINTSMAN_SERVER__LISTEN", "127.0.0.1:1"),
                ("POINTSMAN_STORE", "sqlite::memory:"),
                ("POINTSMAN_HANDLERS__MY_INDEX__RETRY__MAX", "7"),
                ("POINTSMAN_HANDLERS__MY_INDEX__RATE", "10/s"),
                ("POINTSMAN_SOURCES__SHOP__SCHEDULE", "@daily"),
                ("POINTSMAN_SOURCES__SHOP__RUN__TIMEOUT", "1m"),
                ("POINTSMAN_SOURCES__SHOP__COLLECTIONS", "[b, {name: c}]"),
                ("POINTSMAN_TENANTS__LAB__WEIGHT", "5"),
                ("POINTSMAN_SERVICES", "[http, worker]"),
                ("POINTSMAN_URL", "http://x"),
                ("POINTSMAN_PORT_7646_TCP", "tcp://x"),
            ],
        );
        assert_eq!(found, Ok(vec![]));
        assert_eq!(find_scalar_text(&tree, &["server", "listen"]), "127.0.0.1:1");
        assert_eq!(find_scalar_text(&tree, &["store"]), "sqlite::memory:");
        assert_eq!(find_scalar_text(&tree, &["handlers", "my-index", "retry", "max"]), "7");
        assert_eq!(find_scalar_text(&tree, &["handlers", "my-index", "rate"]), "10/s");
        assert_eq!(find_scalar_text(&tree, &["sources", "shop", "schedule"]), "@daily");
        assert_eq!(find_scalar_text(&tree, &["sources", "shop", "run", "timeout"]), "1m");
        assert_eq!(find_scalar_text(&tree, &["tenants", "lab", "weight"]), "5");
        let collections = tree.get("sources").and_then(|n| n.get("shop")).and_then(|n| n.get("collections"));
        assert!(matches!(&collections.unwrap().kind, YamlKind::List(parts) if parts.len() == 2));
        assert!(
            matches!(&tree.get("services").unwrap().kind, YamlKind::List(services) if services.len() == 2)
        );
    }

    #[test]
    fn unknown_pointsman_variables_are_warned_about() {
        let (_, found) = parse_with_env(
            "handlers: {index: {}}",
            &[
                ("POINTSMAN_BANANA", "1"),
                ("POINTSMAN_HANDLERS__INDX__CRASHES", "1"),
                ("POINTSMAN_SERVER_LISTEN", "1"),
                ("POINTSMAN_WORKRES", "1"),
            ],
        );
        assert_eq!(
            found.unwrap(),
            [
                "POINTSMAN_BANANA: is not a setting and is ignored",
                "POINTSMAN_HANDLERS__INDX__CRASHES: is not a setting and is ignored; did you mean POINTSMAN_HANDLERS__INDEX?",
                "POINTSMAN_SERVER_LISTEN: is not a setting and is ignored; did you mean POINTSMAN_SERVER__LISTEN?",
                "POINTSMAN_WORKRES: is not a setting and is ignored; did you mean POINTSMAN_WORKERS?",
            ]
        );
    }

    #[test]
    fn a_file_variable_reads_the_setting_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        std::fs::write(&path, "sqlite:other.db\n").unwrap();
        let path = path.to_str().unwrap();
        let (tree, found) = parse_with_env("", &[("POINTSMAN_STORE_FILE", path)]);
        assert_eq!((find_scalar_text(&tree, &["store"]), found), ("sqlite:other.db", Ok(vec![])));
        let (_, found) = parse_with_env("", &[("POINTSMAN_STORE_FILE", path), ("POINTSMAN_STORE", "x")]);
        assert_eq!(found, Err(vec!["POINTSMAN_STORE_FILE: POINTSMAN_STORE is set as well".to_owned()]));
    }
}
