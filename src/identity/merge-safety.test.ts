import fc from 'fast-check'
import { expect, it } from 'vitest'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { useService } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'

const service = useService()

type Given = { day: number; state: boolean }
const question = fc.option(fc.record({ day: fc.integer({ min: 1, max: 4 }), state: fc.boolean() }), { freq: 3 })
const channels = ['email', 'sms'] as const
const questions = [1, 2].flatMap(consent_type_id => channels.map(channel => ({ consent_type_id, channel })))
const person = fc.record({
  answers: fc.tuple(...questions.map(() => question)),
  email: fc.constantFrom(undefined, 'x@example.org'),
  mobile_number: fc.constantFrom(undefined, '+4915112345'),
})
type Person = typeof person extends fc.Arbitrary<infer T> ? T : never

const pairs = Number(process.env.KITH_MERGE_PAIRS ?? 60)

/** The two people of a pair may share an address, but no other pair has it. */
const lineOf = (external_id: string, n: number, { answers, email, mobile_number }: Person) => ({
  external_id,
  ...(email && { email: `${n}${email}` }),
  ...(mobile_number && { mobile_number: `${mobile_number}${100 + n}` }),
  consents: answers.flatMap((given, index) =>
    given ? [{ ...questions[index]!, state: given.state, collected_at: `2020-01-0${given.day}T00:00:00Z` }] : [],
  ),
})

/** Whether the latest answer to a question is a grant. Answers at the same time must all be grants. */
const isGranted = (given: (Given | null)[], byDefault: boolean) => {
  const answers = given.filter(answer => answer !== null)
  const latest = Math.max(...answers.map(({ day }) => day))
  return answers.length === 0 ? byDefault : answers.every(({ day, state }) => day < latest || state)
}

it('lets nobody be written to after a merge but those whose later answer was a grant', {
  timeout: 120_000,
}, async () => {
  const second = { key: 'second', default_state: true, channels: channels.map(channel => ({ channel })) }
  const { send } = await createShop(service, second)
  const given = fc.sample(fc.tuple(person, person), pairs)
  const lines = given.flatMap(([one, other], n) => [lineOf(`a${n}`, n, one), lineOf(`b${n}`, n, other)])
  expect((await importLines({ send }, '/v1/people/import', linesFrom(lines))).counts).toMatchObject({ failed: 0 })
  for (const n of given.keys()) {
    const reply = await send('POST', `/v1/people/a${n}/merge`, { from: `b${n}` })
    expect([reply.status, reply.body.message]).toEqual([200, undefined])
  }
  const external_ids = given.map((_, n) => `a${n}`)
  let contactable = 0
  for (const [index, asked] of questions.entries()) {
    const { items } = (await send('POST', '/v1/people/contactable', { ...asked, external_ids })).body.data
    for (const [n, [one, other]] of given.entries()) {
      const address = asked.channel === 'email' ? 'email' : 'mobile_number'
      const hasAddress = (one[address] ?? other[address]) !== undefined
      const granted = isGranted([one.answers[index]!, other.answers[index]!], asked.consent_type_id === 2)
      // An answer of the person who lacks the address lifts no refusal of the address.
      const ofAddress = [one, other].filter(each => each[address] !== undefined).map(({ answers }) => answers[index]!)
      const isLeft = isGranted(ofAddress, true)
      expect([n, asked, items[n].allowed]).toEqual([n, asked, hasAddress && granted && isLeft])
      if (items[n].allowed) contactable += 1
    }
  }
  console.log(`merges over HTTP: ${pairs} pairs, ${pairs * questions.length} questions, ${contactable} contactable`)
})
