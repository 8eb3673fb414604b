//! Parser of source files and manifests: paths, functions, lines without unit tests, and dependencies.

use proc_macro2::{Span, TokenStream, TokenTree};
use std::ops::RangeInclusive;
use syn::spanned::Spanned;
use syn::visit;
use syn::visit::Visit;

/// A path `a::b::c` in code.
pub struct Named {
    /// Segments of the path; those of `use` groups include the prefix of the group.
    pub segments: Vec<String>,
    /// Line number from 1.
    pub line: usize,
    /// Import by `use`, if the path is one.
    pub import: Option<Import>,
}

/// A name imported by `use`.
pub struct Import {
    /// Local name; `*` for all items of a module.
    pub name: String,
    /// `true` for a re-export.
    pub public: bool,
}

/// A function with a body.
pub struct Function {
    /// Name.
    pub name: String,
    /// First line.
    pub line: usize,
    /// Lines of its body.
    pub body: RangeInclusive<usize>,
    /// Values of its largest parameter that is a tuple; 0 without one.
    pub largest_tuple: usize,
}

/// A source file: Rust or CUDA.
#[derive(Default)]
pub struct Source {
    /// Path relative to the workspace, with `/`.
    pub file: String,
    /// All lines; lines of unit tests are empty.
    pub lines: Vec<String>,
    /// All paths.
    pub paths: Vec<Named>,
    /// All functions.
    pub functions: Vec<Function>,
    /// Names of the items defined in the file, including exported macros.
    pub items: Vec<String>,
    /// Names of the modules declared in other files.
    pub modules: Vec<String>,
    /// Exported macros, visible at the root of the crate.
    pub macros: Vec<String>,
}

impl Source {
    /// Parses the text of a Rust file.
    ///
    /// # Errors
    /// Fails if the text is not valid Rust.
    pub fn rust(file: &str, text: &str) -> Result<Self, String> {
        let mut reader = Reader::default();
        reader.source.file = file.to_string();
        if is_test_file(file) {
            return Ok(reader.source);
        }
        let parsed =
            syn::parse_file(text).map_err(|e| format!("{file}:{}: {e}", e.span().start().line))?;
        reader.visit_file(&parsed);
        let tested = |line: usize| reader.tests.iter().any(|test| test.contains(&line));
        let lines = text.lines().enumerate();
        reader.source.lines = lines
            .map(|(n, line)| if tested(n + 1) { "" } else { line }.to_string())
            .collect();
        Ok(reader.source)
    }

    /// Parses the text of a CUDA file; `) {` outside other functions starts a function.
    pub fn cuda(file: &str, text: &str) -> Self {
        let mut source = Self {
            file: file.to_string(),
            lines: text.lines().map(str::to_string).collect(),
            ..Self::default()
        };
        let (mut depth, mut head, mut open) = (0, String::new(), None);
        let mut directive = false;
        for (n, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            directive |= code.trim_start().starts_with('#');
            if directive {
                directive = code.trim_end().ends_with('\\');
                continue;
            }
            for c in code.chars() {
                match c {
                    '{' if open.is_none() && head.contains('(') => {
                        open = Some((depth, n + 1, function_name(&head)));
                    }
                    '}' if open.as_ref().is_some_and(|(at, ..)| *at + 1 == depth) => {
                        let (_, line, name) = open.take().unwrap_or_default();
                        let body = line + 1..=n;
                        source.functions.push(Function {
                            name,
                            line,
                            body,
                            largest_tuple: 0,
                        });
                    }
                    _ => {}
                }
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    _ => {}
                }
                match c {
                    '{' | '}' | ';' => head.clear(),
                    c => head.push(c),
                }
            }
            head.push(' ');
        }
        source
    }

    /// Returns the paths in `use` items and those with at least two segments.
    pub fn whole_paths(&self) -> impl Iterator<Item = &Named> {
        let whole = |path: &&Named| path.import.is_some() || path.segments.len() > 1;
        self.paths.iter().filter(whole)
    }

    /// Returns the number of lines in `range` with code.
    pub fn code_lines(&self, range: RangeInclusive<usize>) -> usize {
        let lines = range.filter_map(|line| self.lines.get(line - 1));
        lines
            .filter(|line| !line.trim().is_empty() && !line.trim().starts_with("//"))
            .count()
    }
}

/// Returns `true` for files of unit tests: `tests.rs` or a folder `tests` in `src`.
fn is_test_file(file: &str) -> bool {
    let inside = file.split_once("/src/").map_or("", |(_, inside)| inside);
    inside
        .split('/')
        .any(|part| part == "tests" || part == "tests.rs")
}

/// Returns the name of a CUDA function: the word before the first parenthesis that is not of an attribute.
fn function_name(head: &str) -> String {
    let head = head.replace("__launch_bounds__(", "");
    let before = head.split('(').next().unwrap_or_default();
    let name = before.rsplit(|c: char| !(c.is_alphanumeric() || c == '_'));
    name.clone()
        .find(|n| !n.is_empty())
        .unwrap_or_default()
        .to_string()
}

/// Visitor of the syntax tree of a file.
#[derive(Default)]
struct Reader {
    source: Source,
    /// Lines of unit tests.
    tests: Vec<RangeInclusive<usize>>,
    /// Depth of inline modules.
    inside: usize,
}

impl Reader {
    fn path(&mut self, segments: Vec<String>, span: Span, import: Option<Import>) {
        // paths through `super` in an inline module belong to the file
        let up = segments.iter().take_while(|s| *s == "super").count();
        let skipped = up.min(self.inside);
        let segments: Vec<String> = segments.into_iter().skip(skipped).collect();
        if !segments.is_empty() {
            let line = span.start().line;
            self.source.paths.push(Named {
                segments,
                line,
                import,
            });
        }
    }

    fn imports(&mut self, tree: &syn::UseTree, before: &[String], public: bool) {
        let with = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.imports(&path.tree, &with(&path.ident), public),
            syn::UseTree::Name(name) if name.ident == "self" => {
                let name = before.last().cloned().unwrap_or_default();
                self.import(before.to_vec(), name, tree, public);
            }
            syn::UseTree::Name(name) => {
                self.import(with(&name.ident), name.ident.to_string(), tree, public);
            }
            syn::UseTree::Rename(name) => {
                self.import(with(&name.ident), name.rename.to_string(), tree, public);
            }
            syn::UseTree::Glob(_) => self.import(before.to_vec(), "*".into(), tree, public),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.imports(tree, before, public);
                }
            }
        }
    }

    fn import(&mut self, segments: Vec<String>, name: String, tree: &syn::UseTree, public: bool) {
        self.path(segments, tree.span(), Some(Import { name, public }));
    }

    /// Collects paths in the arguments of a macro: words joined by `::`.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut joined) = (Vec::new(), 0);
        let mut first = Span::call_site();
        for token in tokens {
            match &token {
                TokenTree::Ident(word) if joined == 2 || path.is_empty() => {
                    if path.is_empty() {
                        first = word.span();
                    }
                    path.push(word.to_string());
                    joined = 0;
                    continue;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && joined < 2 => {
                    joined += 1;
                    continue;
                }
                _ => {}
            }
            self.path(std::mem::take(&mut path), first, None);
            joined = 0;
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(word) => {
                    first = word.span();
                    path.push(word.to_string());
                }
                _ => {}
            }
        }
        self.path(path, first, None);
    }

    fn function(
        &mut self,
        attributes: &[syn::Attribute],
        signature: &syn::Signature,
        block: &syn::Block,
    ) {
        // the state of several fields in a cell is a tuple, by the contract of device functions
        let is_device = attributes.iter().any(|a| a.path().is_ident("device"));
        let braces = block.brace_token.span;
        self.source.functions.push(Function {
            name: signature.ident.to_string(),
            line: signature.span().start().line,
            body: braces.open().start().line + 1..=braces.close().start().line - 1,
            largest_tuple: if is_device {
                0
            } else {
                largest_tuple(signature)
            },
        });
    }

    /// Returns `true` if an item with these attributes is a unit test, and clears its lines.
    fn is_test(&mut self, attributes: &[syn::Attribute], span: Span) -> bool {
        let test = attributes.iter().any(|a| {
            a.path().is_ident("cfg")
                && a.parse_args::<syn::Path>()
                    .is_ok_and(|p| p.is_ident("test"))
        });
        if test {
            self.tests.push(span.start().line..=span.end().line);
        }
        test
    }

    fn item(&mut self, item: &syn::Item) {
        use syn::Item::*;
        let name = match item {
            Const(i) => &i.ident,
            Enum(i) => &i.ident,
            Fn(i) => &i.sig.ident,
            Static(i) => &i.ident,
            Struct(i) => &i.ident,
            Trait(i) => &i.ident,
            TraitAlias(i) => &i.ident,
            Type(i) => &i.ident,
            Union(i) => &i.ident,
            Mod(i) if i.content.is_some() => &i.ident,
            Mod(i) => return self.source.modules.push(i.ident.to_string()),
            Macro(i) => {
                return self
                    .source
                    .macros
                    .extend(i.ident.iter().map(ToString::to_string));
            }
            _ => return,
        };
        self.source.items.push(name.to_string());
    }
}

impl<'a> Visit<'a> for Reader {
    fn visit_item(&mut self, item: &'a syn::Item) {
        if !self.is_test(attributes(item), item.span()) {
            self.item(item);
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        self.inside += 1;
        visit::visit_item_mod(self, module);
        self.inside -= 1;
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        let public = !matches!(item.vis, syn::Visibility::Inherited);
        self.imports(&item.tree, &[], public);
    }

    fn visit_item_extern_crate(&mut self, item: &'a syn::ItemExternCrate) {
        let name = item.ident.to_string();
        let import = Import {
            name: name.clone(),
            public: false,
        };
        self.path(vec![name], item.span(), Some(import));
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let segments = path.segments.iter().map(|s| s.ident.to_string());
        self.path(segments.collect(), path.span(), None);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, macro_: &'a syn::Macro) {
        self.tokens(macro_.tokens.clone());
        visit::visit_macro(self, macro_);
    }

    fn visit_meta_list(&mut self, list: &'a syn::MetaList) {
        self.tokens(list.tokens.clone());
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if !self.is_test(&item.attrs, item.span()) {
            self.function(&item.attrs, &item.sig, &item.block);
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.attrs, &item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

/// Returns the number of values of the largest parameter that is a tuple, or a reference to one; 0 without one.
fn largest_tuple(signature: &syn::Signature) -> usize {
    let values = |input: &syn::FnArg| {
        let syn::FnArg::Typed(input) = input else {
            return 0;
        };
        let mut of = &*input.ty;
        while let syn::Type::Reference(reference) = of {
            of = &reference.elem;
        }
        match of {
            syn::Type::Tuple(tuple) => tuple.elems.len(),
            _ => 0,
        }
    };
    signature.inputs.iter().map(values).max().unwrap_or(0)
}

/// Returns the attributes of an item.
fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    use syn::Item::*;
    match item {
        Const(i) => &i.attrs,
        Enum(i) => &i.attrs,
        ExternCrate(i) => &i.attrs,
        Fn(i) => &i.attrs,
        ForeignMod(i) => &i.attrs,
        Impl(i) => &i.attrs,
        Macro(i) => &i.attrs,
        Mod(i) => &i.attrs,
        Static(i) => &i.attrs,
        Struct(i) => &i.attrs,
        Trait(i) => &i.attrs,
        TraitAlias(i) => &i.attrs,
        Type(i) => &i.attrs,
        Union(i) => &i.attrs,
        Use(i) => &i.attrs,
        _ => &[],
    }
}

/// A crate's `Cargo.toml`.
pub struct Manifest {
    /// Path of the manifest, relative to the workspace.
    pub file: String,
    /// Names and lines of all dependencies, including those of tests and build scripts.
    pub dependencies: Vec<(String, usize)>,
}

impl Manifest {
    /// Parses the forms `name = …`, `name.workspace = true` and `[dependencies.name]`.
    pub fn parse(file: &str, text: &str) -> Self {
        let mut manifest = Self {
            file: file.to_string(),
            dependencies: Vec::new(),
        };
        let mut section = String::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some(header) = line.strip_prefix('[') {
                section = header.trim_matches(['[', ']']).to_string();
                if let Some((_, name)) = section
                    .rsplit_once('.')
                    .filter(|(table, _)| lists_dependencies(table))
                {
                    manifest.dependencies.push((unquoted(name), index + 1));
                }
            } else if let Some((key, _)) = line.split_once('=')
                && lists_dependencies(&section)
            {
                let name = key.trim().split('.').next().unwrap_or(key);
                manifest.dependencies.push((unquoted(name), index + 1));
            }
        }
        manifest
    }
}

/// Returns `true` for sections of dependencies, such as `target.'cfg(unix)'.dependencies`.
fn lists_dependencies(section: &str) -> bool {
    let last = section.rsplit('.').next().unwrap_or(section);
    matches!(
        last,
        "dependencies" | "dev-dependencies" | "build-dependencies"
    )
}

fn unquoted(text: &str) -> String {
    text.trim_matches(['"', '\'']).to_string()
}

#[cfg(test)]
mod tests {
    use crate::layers::source::Manifest;

    #[test]
    fn dependencies_are_read() {
        let text = "[package]\nname = \"nestar-engine\" # it\n[dependencies]\nserde = \"1\"\nbevy_ecs.workspace = true\n\
                    [target.'cfg(unix)'.dependencies]\nlibc = { version = \"0.2\" }\n[dependencies.mpi]\nversion = \"0.8\"\n\
                    [features]\nx = []\n";
        let manifest = Manifest::parse("engine/Cargo.toml", text);
        let names: Vec<_> = manifest
            .dependencies
            .iter()
            .map(|(n, l)| (n.as_str(), *l))
            .collect();
        assert_eq!(
            names,
            [("serde", 4), ("bevy_ecs", 5), ("libc", 7), ("mpi", 8)]
        );
    }
}
