import { readFileSync } from 'node:fs'
import { anchorOf } from '../../docs/.vitepress/navigation.ts'

/** The text of the pages for operators. */
export const manual = ['operations', 'runbook', 'backups']
  .map(name => readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), 'utf8'))
  .join('\n')

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

/**
 * The code blocks of a language below a heading. Throws if the heading does not exist. The tests run what operators
 * run.
 */
export function blocksOf(title: string, language: string): string[] {
  const section = sections.find(each => each.title === title)
  if (!section) throw new Error(`the manual has no section "${title}"`)
  return [...section.text.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(match => match[1]!)
}
