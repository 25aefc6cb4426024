//! Document types that ask for quirks mode, in which a table may stand in a `p`.

use super::tokens::is_space;

/// Beginnings of public identifiers that ask for quirks mode.
const PREFIXES: [&str; 54] = [
    "-//advasoft ltd//dtd html 3.0 aswedit + extensions//",
    "-//as//dtd html 3.0 aswedit + extensions//",
    "-//ietf//dtd html 2.0 level 1//",
    "-//ietf//dtd html 2.0 level 2//",
    "-//ietf//dtd html 2.0 strict level 1//",
    "-//ietf//dtd html 2.0 strict level 2//",
    "-//ietf//dtd html 2.0 strict//",
    "-//ietf//dtd html 2.0//",
    "-//ietf//dtd html 2.1e//",
    "-//ietf//dtd html 3.0//",
    "-//ietf//dtd html 3.2 final//",
    "-//ietf//dtd html 3.2//",
    "-//ietf//dtd html 3//",
    "-//ietf//dtd html level 0//",
    "-//ietf//dtd html level 1//",
    "-//ietf//dtd html level 2//",
    "-//ietf//dtd html level 3//",
    "-//ietf//dtd html strict level 0//",
    "-//ietf//dtd html strict level 1//",
    "-//ietf//dtd html strict level 2//",
    "-//ietf//dtd html strict level 3//",
    "-//ietf//dtd html strict//",
    "-//ietf//dtd html//",
    "-//metrius//dtd metrius presentational//",
    "-//microsoft//dtd internet explorer 2.0 html strict//",
    "-//microsoft//dtd internet explorer 2.0 html//",
    "-//microsoft//dtd internet explorer 2.0 tables//",
    "-//microsoft//dtd internet explorer 3.0 html strict//",
    "-//microsoft//dtd internet explorer 3.0 html//",
    "-//microsoft//dtd internet explorer 3.0 tables//",
    "-//netscape comm. corp.//dtd html//",
    "-//netscape comm. corp.//dtd strict html//",
    "-//o'reilly and associates//dtd html 2.0//",
    "-//o'reilly and associates//dtd html extended 1.0//",
    "-//o'reilly and associates//dtd html extended relaxed 1.0//",
    "-//softquad software//dtd hotmetal pro 6.0::19990601::extensions to html 4.0//",
    "-//softquad//dtd hotmetal pro 4.0::19971010::extensions to html 4.0//",
    "-//spyglass//dtd html 2.0 extended//",
    "-//sq//dtd html 2.0 hotmetal + extensions//",
    "-//sun microsystems corp.//dtd hotjava html//",
    "-//sun microsystems corp.//dtd hotjava strict html//",
    "-//w3c//dtd html 3 1995-03-24//",
    "-//w3c//dtd html 3.2 draft//",
    "-//w3c//dtd html 3.2 final//",
    "-//w3c//dtd html 3.2//",
    "-//w3c//dtd html 3.2s draft//",
    "-//w3c//dtd html 4.0 frameset//",
    "-//w3c//dtd html 4.0 transitional//",
    "-//w3c//dtd html experimental 19960712//",
    "-//w3c//dtd html experimental 970421//",
    "-//w3c//dtd w3 html//",
    "-//w3o//dtd w3 html 3.0//",
    "-//webtechs//dtd mozilla html 2.0//",
    "-//webtechs//dtd mozilla html//",
];

/// Public identifiers that ask for quirks mode.
const WHOLE: [&str; 3] = [
    "-//w3o//dtd w3 html strict 3.0//en//",
    "-/w3c/dtd html 4.0 transitional/en",
    "html",
];

/// Public identifiers that ask for quirks mode if no system identifier follows.
const ALONE: [&str; 2] = [
    "-//w3c//dtd html 4.01 frameset//",
    "-//w3c//dtd html 4.01 transitional//",
];

const SYSTEM: &str = "http://www.ibm.com/data/dtd/v11/ibmxhtml1-transitional.dtd";

/// Returns true if this document type, from its `<` to its `>`, asks for quirks mode.
pub(super) fn asks_for(doctype: &str) -> bool {
    match identifiers(&doctype.to_ascii_lowercase()) {
        None => true,
        Some((public, system)) => {
            let public = public.unwrap_or_default();
            system == Some(SYSTEM)
                || WHOLE.contains(&public)
                || PREFIXES.iter().any(|prefix| public.starts_with(prefix))
                || system.is_none() && ALONE.iter().any(|prefix| public.starts_with(prefix))
        }
    }
}

type Identifiers<'d> = (Option<&'d str>, Option<&'d str>);

/// Returns the public and the system identifier of a document type in lower case. `None` if it is malformed, or
/// not that of HTML; both ask for quirks mode.
fn identifiers(doctype: &str) -> Option<Identifiers<'_>> {
    let rest = doctype.strip_prefix("<!doctype")?.strip_suffix('>')?;
    let rest = trim(rest);
    let name_end = rest.bytes().position(is_space).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(name_end);
    if name != "html" {
        return None;
    }
    let rest = trim(rest);
    if rest.is_empty() {
        return Some((None, None));
    }
    if let Some(rest) = rest.strip_prefix("system") {
        let (system, _) = quoted(rest)?;
        return Some((None, Some(system)));
    }
    let (public, rest) = quoted(rest.strip_prefix("public")?)?;
    if trim(rest).is_empty() {
        return Some((Some(public), None));
    }
    let (system, _) = quoted(rest)?;
    Some((Some(public), Some(system)))
}

/// Returns the text in quotes, and the text that follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let text = trim(text);
    let quote = text
        .chars()
        .next()
        .filter(|quote| matches!(quote, '"' | '\''))?;
    text[1..].split_once(quote)
}

fn trim(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii() && is_space(c as u8))
}

#[cfg(test)]
mod tests {
    use scraper::Html;

    use super::*;

    #[test]
    fn quirks_mode_is_asked_for_as_html5ever_has_it() {
        let whole = [
            "<!doctype html>",
            "<!DOCTYPE HTML>",
            "<!doctypehtml>",
            "<!doctype>",
            "<!doctype >",
            "<!doctype xhtml>",
            "<!doctype html foo>",
            "<!doctype html public>",
            "<!doctype html public x>",
            "<!doctype html system>",
            "<!doctype html system 'about:legacy-compat'>",
            "<!doctype html system'about:legacy-compat' more>",
            "<!doctype html system \"open>",
            "<!doctype html public 'html'>",
            "<!doctype html public \"-//W3C//DTD HTML 4.0 Transitional//EN\">",
            "<!DOCTYPE html PUBLIC \"-//W3C//DTD HTML 4.01 Transitional//EN\">",
            "<!DOCTYPE html PUBLIC \"-//W3C//DTD HTML 4.01 Transitional//EN\" \"http://www.w3.org/TR/html4/loose.dtd\">",
            "<!DOCTYPE html PUBLIC \"-//W3C//DTD HTML 4.01 Frameset//EN\" x>",
            "<!DOCTYPE html PUBLIC \"-//W3C//DTD HTML 4.01//EN\">",
            "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Transitional//EN\">",
            "<!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0 Strict//EN''x'>",
            "<!DOCTYPE html PUBLIC '-//W3O//DTD W3 HTML Strict 3.0//EN//'>",
            "<!DOCTYPE html SYSTEM 'http://www.ibm.com/data/dtd/v11/ibmxhtml1-transitional.dtd'>",
            "<!DOCTYPE html PUBLIC 'x' 'http://www.ibm.com/data/dtd/v11/ibmxhtml1-transitional.dtd'>",
            "<!DOCTYPE html PUBLIC 'x' 'open>",
            "<!DOCTYPE html PUBLIC 'x' 'y' z>",
            "<!DOCTYPE\u{c}html\t>",
        ];
        for doctype in whole {
            check(doctype);
        }
        for prefix in PREFIXES {
            check(&format!("<!DOCTYPE HTML PUBLIC \"{prefix}EN\">"));
            check(&format!("<!DOCTYPE HTML PUBLIC \"{prefix}EN\" \"x\">"));
        }
    }

    fn check(doctype: &str) {
        // A table may stand in a `p` only in quirks mode.
        let page = Html::parse_document(&format!("{doctype}<p><table>"));
        let selector = scraper::Selector::parse("p > table").unwrap();
        let expected = page.select(&selector).next().is_some();
        assert_eq!(asks_for(doctype), expected, "{doctype}");
    }
}
