import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ConsentType, Definitions } from '../../client/index.ts'
import { usualSettings } from '../../transfer/csv.ts'
import { readAnswers } from '../../transfer/profile-answers.ts'
import { profileColumnsOf } from './profile-columns.ts'
import { type Profile, readProfile } from './profile-file.ts'

const typeOf = (id: number, key: string, is_default: boolean) =>
  ({
    ...{ id, key, name: key, description: null, state: 'active', mandatory: false, default_state: false },
    channels: (['email', 'sms'] as const).map(channel => ({ channel, is_default, double_opt_in: false })),
    ...{ text_versions: 0, created_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-01T00:00:00.000Z' },
  }) satisfies ConsentType
const definitions: Definitions = {
  stacks: [],
  attributes: [],
  consent_types: [typeOf(1, 'marketing', true), typeOf(2, 'surveys', false)],
}
const columnOptions = {
  ...{ map: new Map(), ignore: [], unknownAsAttributes: false, prefixes: new Map(), constants: new Map() },
}

type Cell = { name: string; text: string }

const exportedAt = '2024-06-01T00:00:00.000Z'
const subscription = 'Opted out of email: Surveys'

/** Reads one record with a profile. Returns the fault of the file or line, or the answers by type and channel. */
function answersOf(profile: Profile, status: string | null, cells: Cell[]) {
  const hasSubscription = cells.some(({ name }) => /^opted.out.of.email/i.test(name))
  const { profile: plan } = profileColumnsOf(
    cells.map(({ name }) => name),
    definitions,
    columnOptions,
    {
      ...{ profile, status, externalId: 'id', exportedAt, timeZone: null },
      consentTypes: new Map(hasSubscription ? [[subscription, 'surveys']] : []),
      splitPhone: () => ({ mobile_prefix: '', mobile_number: '' }),
    },
  )
  const options = {
    product: profile.product,
    parse: { ...usualSettings, offset: 'Z' as const },
    exportedAt,
  }
  const { entries, details } = readAnswers(plan.rules, index => cells[index]!.text, '', options)
  expect(details).toEqual([])
  return new Map(entries.map(({ consent_type_id, channel, ...entry }) => [`${consent_type_id} ${channel}`, entry]))
}

/** The columns of a profile in a file, each with the cells that it may have. */
function columnsOf(profile: Profile): Map<string, string[]> {
  const times = ['', '2024-01-31T09:00:00Z', '2024-03-01T00:00:00Z']
  const columns = new Map([[profile.external_id.columns[0]!, ['1']]])
  for (const { column, words, time = [], refusal } of profile.answers) {
    for (const name of [...time, ...(refusal?.time ?? [])]) columns.set(name, times)
    if (column && !columns.has(column))
      columns.set(column.replace('*', 'Surveys'), ['', 'wahr', 'X', ...Object.keys(words).filter(word => word !== '*')])
  }
  return columns
}

const changedName = (name: string) =>
  fc.constantFrom(
    name,
    name.toLowerCase(),
    name.toUpperCase(),
    name.replaceAll(' ', '_'),
    ` ${name.replaceAll(' ', '-')} `,
  )

const profiles = await Promise.all(['hubspot', 'klaviyo', 'mailchimp'].map(name => readProfile(name, path => path)))

describe.each(profiles)('the columns of an export of $product', profile => {
  const columns = columnsOf(profile)
  const record = fc
    .tuple(...[...columns].map(([name, texts]) => fc.constantFrom(...texts).map(text => ({ name, text }))))
    .map(cells => cells as Cell[])
  const more = fc.array(
    fc.constantFrom(...columns.keys()).chain(name =>
      fc.record({
        name: changedName(name),
        text: fc.constantFrom(...columns.get(name)!),
      }),
    ),
    { maxLength: 4 },
  )
  const status = fc.constantFrom(...(profile.statuses ?? [null]))

  it('in any order and however often give the same answers, and never a grant or an older refusal for a refusal', () => {
    const shuffled = record.chain(cells =>
      more.chain(added =>
        fc.record({
          cells: fc.constant(cells),
          others: fc.shuffledSubarray([...cells, ...added], { minLength: cells.length + added.length }),
          again: fc.shuffledSubarray([...cells, ...added], { minLength: cells.length + added.length }),
        }),
      ),
    )
    fc.assert(
      fc.property(shuffled, status, ({ cells, others, again }, fileStatus) => {
        const given = answersOf(profile, fileStatus, cells)
        const found = answersOf(profile, fileStatus, others)
        const decided = (answers: typeof found) =>
          [...answers].map(([key, { state, collected_at, method }]) => [key, state, collected_at, method]).sort()
        expect(decided(answersOf(profile, fileStatus, again))).toEqual(decided(found))
        for (const [key, { state, collected_at }] of given) {
          // A grant does not get the time of the export, because it may be older than any refusal.
          if (state) expect(collected_at).not.toBe(exportedAt)
          if (state) continue
          expect(found.get(key)?.state).toBe(false)
          // A time in a column replaces the time of the export.
          if (collected_at !== exportedAt) expect(found.get(key)!.collected_at! >= collected_at!).toBe(true)
        }
      }),
      { numRuns: 500 },
    )
  })
})
