import type { SummaryFlag } from '../channels.ts'
import type { Answers, Question } from '../consents/answers.ts'
import type { Columns } from '../entities/entity-row.ts'
import type { MergePlan } from './merge.ts'

/**
 * An answer of a merged person that counts as one of the survivor's, from the version `since` of the survivor on, and until
 * `until`. `version` is that of the person who gave it.
 */
export type TakenAnswer = Question & { person_id: string; version: number; since: number; until?: number }

/** The content of `merges.undo` while the merge stands. */
export type Undo = {
  /** The version of the survivor that the merge made. Null if it changed nothing of the survivor. */
  into_version: number | null
  /** The merged person as it was. */
  other: {
    columns: Omit<Columns, 'version' | 'answers'>
    answers: Answers
    attributes: Record<string, unknown>
    /** What the links named when they were written, by attribute. */
    links: Record<string, string[]>
  }
  filled: MergePlan['filled']
  /** The summary flags of the survivor before the merge. */
  flags: Record<SummaryFlag, boolean | null>
  /** The aliases of the merged person, and the merges into it. */
  aliases: string[]
  merges: number[]
  answers: TakenAnswer[]
}

/** The content of `merges.undo` after the merge was undone: the version of the survivor for erasures, and the answers for past states. */
export type EndedUndo = Pick<Undo, 'into_version' | 'answers'>

/** A row of `merges`. `undo` is null if one of the two was erased. */
export type MergeRow = {
  id: number
  merged_id: string
  into_id: string
  person_id: string
  sequence: number
  undo: Undo | null
}
