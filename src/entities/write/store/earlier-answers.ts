import { type AddressAnswer, storeAddressAnswers } from '../../../consents/address-answers.ts'
import {
  addressAnswersFollowerName,
  endAddressAnswersSql,
  readEarlierAnswersSql,
} from '../../../consents/address-answers-sql.ts'
import type { NumberedAnswer, Question } from '../../../consents/answers.ts'
import type { Evidence } from '../../../consents/schema.ts'
import type { Follower, Progress, Task } from '../../../followers/follower.ts'
import { changeOrganization, ownAuthor } from '../../../organizations/change-organization.ts'
import { addressKey, type KeyFields } from '../../match-keys.ts'

/** A step locks the head for the answers of this many changes. A phone takes 14 µs. */
const changesPerStep = 500

/** An answer of the history, with the address of the person at that time. */
type EarlierAnswer = Question &
  Pick<KeyFields, 'email' | 'mobile_prefix' | 'mobile_number'> &
  Pick<NumberedAnswer, 'state' | 'answered_at'> & {
    person_id: string
    method: Evidence['method'] | null
    text_version: number | null
    sequence: number
    undated: boolean
  }

/**
 * The follower that gives addresses the answers from before their table existed. The migration begins it for
 * organizations with such answers. At the end of the log it deletes its row, because writes store the later answers. It
 * may store an answer again that it or a write has stored.
 */
export function addressAnswersFollower(): Follower {
  return { name: addressAnswersFollowerName, isForEveryOrganization: false, maxConcurrent: 1, work }
}

async function work(task: Task): Promise<Progress> {
  const { db, organization_id, head, signal } = task
  let sequence = task.after
  while (sequence < head && !signal.aborted) sequence = await addAnswers(task, sequence)
  if (sequence >= head) await db.query(endAddressAnswersSql, [organization_id])
  return { sequence }
}

/**
 * Adds the answers of the next changes, with the head locked, so that no erasure runs in between. Returns the new
 * position.
 */
const addAnswers = (task: Task, after: number): Promise<number> =>
  changeOrganization(task, ownAuthor(), async ({ tx, organization_id, definitions }) => {
    const last = Math.min(after + changesPerStep, task.head)
    const rows = await tx.query<EarlierAnswer>(readEarlierAnswersSql, [organization_id, after, last])
    const answers = rows.flatMap((row): AddressAnswer[] => {
      const { channel, consent_type_id, person_id, sequence, state, answered_at, method, text_version, undated } = row
      const address = addressKey(row, channel, definitions.default_country)
      if (address === null) return []
      const evidence = { ...(method && { method }), ...(text_version && { text_version }) }
      const answer = { state, answered_at, ...evidence, sequence, ...(undated && { undated: true as const }) }
      return [{ channel, consent_type_id, address, person_id, answer }]
    })
    const storing = answers.length === 0 ? [] : [storeAddressAnswers(tx, organization_id, answers)]
    return { statements: [...storing, task.advance(tx, last)], changes: [], result: last }
  })
