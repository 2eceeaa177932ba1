import { lineOf, readSources, type Source, type Violation, warn } from './source.ts'

/** How a sentence reads that has to be solved first: its subject is a riddle, or comes late. */
const riddles = [
  /(?:^|[.:;!?] )(?:Who|Whoever|Whom|Whomever|What|Whatever|Of|So many|So much)\b(?![^.]*\?)/,
  /\b(?:be it|be they|as it may|so to speak)\b/i,
  /\b(?:nobody's|anybody's|somebody else's)\b/i,
]

/** A block of comment: its first line, and its text without the signs around it. */
export type Comment = { path: string; line: number; text: string }

/** The comments of a file. Lines of `//` that follow each other are one block. */
export function commentsOf({ path, text }: Source): Comment[] {
  const blocks = text.matchAll(/^[ \t]*\/\*\*?([\s\S]*?)\*\/|(?:^[ \t]*\/\/.*\n?)+/gm)
  return [...blocks].map(block => ({
    path,
    line: lineOf(text, block.index),
    text: block[0]
      .replace(/^[ \t]*\/\*\*?|\*\/$/g, '')
      .replace(/^[ \t]*(?:\*|\/\/)/gm, '')
      .replace(/\s+/g, ' ')
      .trim(),
  }))
}

/** The comments that read like a riddle, by a list of patterns. It finds the usual ones, not all. */
export function checkProse(sources: Source[]): Violation[] {
  return sources
    .flatMap(commentsOf)
    .filter(({ text }) => riddles.some(riddle => riddle.test(text)))
    .map(({ path, line }) => ({ path, line, sentence: 'the subject comes first, and has a name (STYLE.md, words)' }))
}

if (import.meta.main) {
  const sources = readSources()
  const found = checkProse(sources)
  if (process.argv.includes('--report'))
    console.log(`comments: ${sources.flatMap(commentsOf).length}, of which ${found.length} read like a riddle`)
  warn(found)
}
