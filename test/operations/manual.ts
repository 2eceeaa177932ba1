import { readFileSync } from 'node:fs'

/** The text of docs/operations.md. */
export const manual = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')

/** A heading of the manual and the text below it, up to the next heading of any level. */
export type Section = { title: string; anchor: string; text: string }

export const sections = sectionsOf(manual)

function sectionsOf(document: string): Section[] {
  return document
    .split(/^(?=#{1,4} )/m)
    .filter(part => part.startsWith('#'))
    .map(part => {
      const [, title = '', text = ''] = /^#+ (.*)\n([\s\S]*)$/.exec(part) ?? []
      return { title, anchor: anchorOf(title), text }
    })
}

/** The link anchors of a document's headings. */
export const anchorsOf = (document: string): string[] => sectionsOf(document).map(({ anchor }) => anchor)

/** The anchor of a heading, as code hosts generate it. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

/**
 * The code blocks of a language below a heading. Throws if the heading does not exist. The tests run what operators
 * run.
 */
export function blocksOf(title: string, language: string): string[] {
  const section = sections.find(each => each.title === title)
  if (!section) throw new Error(`the manual has no section "${title}"`)
  return [...section.text.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(match => match[1]!)
}
