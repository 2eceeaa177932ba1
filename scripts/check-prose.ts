import { lineOf, readSources, report, type Source, type Violation } from './source.ts'

/** Patterns of sentences that are hard to read: the subject is a relative clause or comes late. */
const riddles = [
  /(?:^|[.:;!?] )(?:Who|Whoever|Whom|Whomever|What|Whatever|Of|So many|So much)\b(?![^.]*\?)/,
  /\b(?:be it|be they|as it may|so to speak)\b/i,
  /\b(?:nobody's|anybody's|somebody else's)\b/i,
]

/** A comment block: the number of its first line, and its text without the comment marks. */
export type Comment = { path: string; line: number; text: string }

/** Returns the comments of a file. Consecutive lines of `//` are one block. */
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

/** Returns a violation for each comment that matches a pattern. The patterns find the usual cases, not all. */
export function checkProse(sources: Source[]): Violation[] {
  return sources
    .flatMap(commentsOf)
    .filter(({ text }) => riddles.some(riddle => riddle.test(text)))
    .map(({ path, line }) => ({
      path,
      line,
      message: 'a sentence does not begin with its subject, a named thing (STYLE.md, Prose)',
    }))
}

if (import.meta.main) {
  const sources = readSources()
  const found = checkProse(sources)
  if (process.argv.includes('--report'))
    console.log(`comments: ${sources.flatMap(commentsOf).length}, ${found.length} of them hard to read`)
  report(found)
}
