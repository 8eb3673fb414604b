//! Names of systems in messages and tables.

/// Returns the name of a system without modules: `restrict<Dye>` for `nestar_engine::data::operators::restrict<…::Dye>`. A closure is
/// named after the enclosing function or plugin.
pub fn short_name(name: &str) -> String {
    if let Some((closure, number)) = name.rsplit_once(" (")
        && closure.ends_with("{{closure}}")
    {
        return format!("{} ({number}", short_name(closure));
    }
    let text = without_modules(name);
    let Some(function) = text.strip_suffix("::{{closure}}") else {
        return text;
    };
    let plugin = function.strip_prefix('<');
    match plugin.and_then(|text| text.strip_suffix(" as Plugin>::build")) {
        Some(plugin) => format!("closure of the plugin {plugin}"),
        None => format!("closure of {function}"),
    }
}

fn without_modules(name: &str) -> String {
    let mut text = String::new();
    let mut rest = name;
    while !rest.is_empty() {
        let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '{' | '}');
        let end = rest.find(|c| !is_path(c)).unwrap_or(rest.len());
        let (path, behind) = rest.split_at(end);
        text.push_str(last_names(path));
        let next = behind.find(is_path).unwrap_or(behind.len());
        text.push_str(&behind[..next]);
        rest = &behind[next..];
    }
    text
}

fn last_names(path: &str) -> &str {
    // the part after a type in brackets, as in `<Drag as Plugin>::build`
    if path.starts_with("::") {
        return path;
    }
    let without_closures = path.trim_end_matches("::{{closure}}");
    without_closures
        .rfind("::")
        .map_or(path, |at| &path[at + 2..])
}

#[cfg(test)]
mod tests {
    use super::short_name;

    #[test]
    fn names_of_types_lose_their_modules() {
        assert_eq!(
            short_name("nestar_engine::data::operations::restrict<nestar_systems::fields::Gas>"),
            "restrict<Gas>"
        );
        assert_eq!(
            short_name("<drag::Drag as nestar_engine::step::Plugin>::build::{{closure}}"),
            "closure of the plugin Drag"
        );
        assert_eq!(short_name("a::b::main::{{closure}}"), "closure of main");
        assert_eq!(
            short_name("a::main::{{closure}} (2)"),
            "closure of main (2)"
        );
        assert_eq!(short_name("split source heat"), "split source heat");
        assert_eq!(short_name("fluid"), "fluid");
    }
}
