import type { ImportItem } from '../../transfer/item.ts'
import type { AddressEvent, Outcome, ReadWord } from '../../transfer/profile-answers.ts'
import { formatCount } from '../progress.ts'

/** A wrongly chosen column can have a different value in every line. */
const maxWordsOfColumn = 100
const furtherWords = '(further words)'
const maxWordLength = 100

type WordCount = { column: string; word: string; outcome: Outcome; known: boolean; lines: number }
type TypeCount = { consent_type_id: number; channel: string; grants: number; refusals: number }
type EventCount = { channel: string; type: AddressEvent['type']; lines: number }
type UnansweredCount = { channel: string; lines: number }

/** Returns the count of a key, `start` at first. */
function countOf<Count>(counts: Map<string, Count>, key: string, start: Count): Count {
  const count = counts.get(key) ?? start
  counts.set(key, count)
  return count
}

/**
 * Counts the results of a profile: the meaning of each word, the answers of each consent type and channel, the events
 * of addresses, and the lines without an answer on a channel.
 */
export class AnswerCounts {
  readonly #words = new Map<string, WordCount>()
  readonly #types = new Map<string, TypeCount>()
  readonly #events = new Map<string, EventCount>()
  readonly #unanswered = new Map<string, UnansweredCount>()

  /** Adds accepted lines. A refused line gives no answer. */
  add(items: ImportItem[]): void {
    for (const { answers, refusal } of items) {
      if (!answers || refusal) continue
      for (const word of answers.words) this.#countWord(word)
      for (const { consent_type_id, channel, state } of answers.entries) {
        const start = { consent_type_id, channel, grants: 0, refusals: 0 }
        countOf(this.#types, `${consent_type_id}:${channel}`, start)[state ? 'grants' : 'refusals']++
      }
      for (const { channel, type } of answers.events)
        countOf(this.#events, `${channel}:${type}`, { channel, type, lines: 0 }).lines++
      for (const channel of new Set(answers.words.map(word => word.channel)))
        if (!answers.entries.some(entry => entry.channel === channel))
          countOf(this.#unanswered, channel, { channel, lines: 0 }).lines++
    }
  }

  #countWord({ column, countedAs, outcome, isKnown }: ReadWord): void {
    const keyOf = (word: string) => JSON.stringify([column, word])
    const shortened = countedAs.slice(0, maxWordLength)
    const isNew = !this.#words.has(keyOf(shortened))
    const isFull = isNew && [...this.#words.values()].filter(each => each.column === column).length >= maxWordsOfColumn
    const word = isFull ? furtherWords : shortened
    countOf(this.#words, keyOf(word), { column, word, outcome, known: isKnown, lines: 0 }).lines++
  }

  /** The counts as JSON. */
  value(): { consents: TypeCount[]; events: EventCount[]; without_answer: UnansweredCount[]; words: WordCount[] } {
    const byChannel = (a: { channel: string }, b: { channel: string }) =>
      a.channel === b.channel ? 0 : a.channel < b.channel ? -1 : 1
    return {
      consents: [...this.#types.values()].sort((a, b) => a.consent_type_id - b.consent_type_id || byChannel(a, b)),
      events: [...this.#events.values()].sort((a, b) => byChannel(a, b) || (a.type < b.type ? -1 : 1)),
      without_answer: [...this.#unanswered.values()].sort(byChannel),
      words: this.#sortedWords(),
    }
  }

  /** The counts as lines of text. */
  lines(keyOfType: (id: number) => string): string[] {
    const { consents, events, without_answer, words } = this.value()
    return [
      ...consents.map(
        ({ consent_type_id, channel, grants, refusals }) =>
          `${channel}, ${keyOfType(consent_type_id)}: ${formatCount(grants)} granted, ${formatCount(refusals)} refused`,
      ),
      ...events.map(({ channel, type, lines }) => `${channel}: ${formatCount(lines)} with ${eventNames[type]}`),
      ...without_answer.map(({ channel, lines }) => `${channel}: ${formatCount(lines)} without an answer`),
      ...words.map(
        ({ column, word, outcome, known, lines }) =>
          `  ${column}: ${word}: ${formatCount(lines)}, ${meanings[outcome]}${known ? '' : ' (the profile does not know this word)'}`,
      ),
    ]
  }

  #sortedWords(): WordCount[] {
    const columns = [...new Set([...this.#words.values()].map(({ column }) => column))]
    return [...this.#words.values()].sort(
      (a, b) =>
        columns.indexOf(a.column) - columns.indexOf(b.column) || b.lines - a.lines || (a.word < b.word ? -1 : 1),
    )
  }
}

const eventNames = { complaint: 'a complaint', hard_bounce: 'a hard bounce' } as const

const meanings: Record<Outcome, string> = {
  complaint: 'a complaint, and a refusal of every consent type of the channel',
  hard_bounce: 'a hard bounce, and no answer, whatever other columns grant',
  grant: 'a grant',
  refuse: 'a refusal',
  refuse_all: 'a refusal of every consent type of the channel',
  withhold: 'no answer, whatever other columns grant',
  none: 'no answer',
}
