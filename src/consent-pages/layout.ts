import type { PageLanguage, SettingsShape } from '../organizations/settings-schema.ts'
import type { HtmlPage } from '../route/page.ts'
import { type Html, html } from '../values/html.ts'
import type { Words } from './words.ts'

const defaultAccent = '#1f4e8c'

/** The boundary of a control needs this contrast with its surroundings (WCAG 2.2, 1.4.11). */
const minControlContrast = 3

type Scheme = { ink: string; quiet: string; paper: string; ground: string; line: string; link: string }

const light: Scheme = {
  ink: '#1b1b1d',
  quiet: '#56565c',
  paper: '#ffffff',
  ground: '#f3f3f1',
  line: '#85858c',
  link: '#0b4f9c',
}
const dark: Scheme = {
  ink: '#f1f1f2',
  quiet: '#b6b6bd',
  paper: '#202124',
  ground: '#151618',
  line: '#85858e',
  link: '#9fc9ff',
}

/** The relative luminance of a color `#rrggbb`, from 0 to 1 (WCAG 2.2). */
function luminanceOf(color: string): number {
  const [red, green, blue] = [1, 3, 5].map(at => {
    const value = Number.parseInt(color.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!
}

/** The contrast of two colors `#rrggbb`, from 1 to 21 (WCAG 2.2). */
export function contrastOf(one: string, other: string): number {
  const [dark, light] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => a - b)
  return (light! + 0.05) / (dark! + 0.05)
}

/** Black or white, whichever reads better on a color. The contrast is at least 4.58, and WCAG AA requires 4.5. */
export const textColorOn = (color: string): string =>
  contrastOf(color, '#000000') >= contrastOf(color, '#ffffff') ? '#000000' : '#ffffff'

const variablesOf = (scheme: Scheme, accent: string) => {
  // A checkbox with a low contrast to its surroundings would hide whether it is checked.
  const check = contrastOf(accent, scheme.paper) >= minControlContrast ? accent : scheme.link
  const values = Object.entries({ ...scheme, check }).map(([name, color]) => `--${name}:${color}`)
  return `:root{${values.join(';')}}`
}

/** The style of a page. The text on a button is black or white, whichever reads better on the accent color. */
const styleOf = (
  accent: string,
) => `:root{color-scheme:light dark;--accent:${accent};--on-accent:${textColorOn(accent)}}
${variablesOf(light, accent)}
@media (prefers-color-scheme:dark){${variablesOf(dark, accent)}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:1.0625rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Open Sans",sans-serif;overflow-wrap:anywhere}
header,main,footer{max-width:40rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:1.5rem;padding-bottom:1rem;font-weight:600}
header p{margin:0}
main{background:var(--paper);border-top:.3rem solid var(--accent);padding-top:1.75rem;padding-bottom:2rem}
footer{padding-top:1rem;padding-bottom:2.5rem;font-size:.9375rem}
h1{font-size:1.625rem;line-height:1.25;margin:0 0 .75rem}
p{margin:0 0 1rem}
.plain{white-space:pre-line}
fieldset{border:0;border-top:1px solid var(--line);margin:1.5rem 0 0;padding:1.25rem 0 0;min-width:0}
legend{float:left;width:100%;font-size:1.1875rem;font-weight:600;line-height:1.35;padding:0;margin:0 0 .375rem}
legend+*{clear:both}
.text{color:var(--quiet);margin:0 0 1rem}
label{display:flex;align-items:center;gap:.75rem;min-height:2.75rem;padding:.375rem 0;cursor:pointer}
input[type=checkbox]{flex:none;width:1.5rem;height:1.5rem;margin:0;accent-color:var(--check)}
.note{color:var(--quiet)}
ul{margin:0 0 1.25rem;padding:0;list-style:none}
li{border-top:1px solid var(--line);padding:.75rem 0}
li:last-child{border-bottom:1px solid var(--line)}
li b,.state{display:block}
.state::first-letter{text-transform:uppercase}
button{display:block;width:100%;min-height:3rem;margin-top:1.75rem;padding:.625rem 1.5rem;font:inherit;font-weight:600;color:var(--on-accent);background:var(--accent);border:1px solid var(--ink);border-radius:.5rem;cursor:pointer}
a{display:inline-block;min-height:1.5rem;color:var(--link)}
footer a{padding:.375rem 0;margin-right:1.5rem}
:focus-visible{outline:3px solid var(--ink);outline-offset:3px;border-radius:.25rem}
.problem{border:2px solid var(--ink);border-radius:.5rem;padding:.75rem 1rem}
@media (min-width:30rem){button{width:auto;min-width:12rem}main{padding-left:2rem;padding-right:2rem}header,footer{padding-left:2rem;padding-right:2rem}}
@media (min-width:44rem){body{padding-top:1.5rem}main{border-radius:0 0 .5rem .5rem}}
`

/** The frame of a page: the language, the words, and the organization's settings, if a link names an organization. */
export type Frame = {
  language: PageLanguage
  words: Words
  settings?: Pick<SettingsShape, 'display_name' | 'accent_color' | 'privacy_url' | 'contact_email'>
}

/** Lays a page out. It has no scripts and loads nothing from elsewhere. */
export function layOut({ language, words, settings }: Frame, title: string, content: Html, status = 200): HtmlPage {
  const style = styleOf(settings?.accent_color ?? defaultAccent)
  const { display_name: name, privacy_url, contact_email } = settings ?? {}
  const page = html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<title>${name ? `${title} · ${name}` : title}</title>
<link rel="icon" href="data:,">
<style>`
  const rest = html`</style>
</head>
<body>
${name && html`<header><p dir="auto">${name}</p></header>`}
<main>
<h1 dir="auto">${title}</h1>
${content}
</main>
${
  (privacy_url || contact_email) &&
  html`<footer>
${privacy_url && html`<a href="${privacy_url}" rel="noreferrer">${words.privacy}</a>`}
${contact_email && html`<a href="mailto:${contact_email}">${words.contact}</a>`}
</footer>`
}
</body>
</html>
`
  return { status, html: page.text + style + rest.text, style }
}
