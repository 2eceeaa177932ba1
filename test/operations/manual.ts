import { readFileSync } from 'node:fs'

/** docs/operations.md as it stands. */
export const manual = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')

/** A heading of the manual and what stands below it, up to the next heading of any level. */
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

/** What the headings of a document are linked to by. */
export const anchorsOf = (document: string): string[] => sectionsOf(document).map(({ anchor }) => anchor)

/** As code hosts make it. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

/** The blocks of this language below a heading: what the manual tells an operator to run is what the tests run. */
export function blocksOf(title: string, language: string): string[] {
  const section = sections.find(each => each.title === title)
  if (!section) throw new Error(`the manual has no section "${title}"`)
  return [...section.text.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(match => match[1]!)
}
