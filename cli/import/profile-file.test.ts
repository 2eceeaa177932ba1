import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { UsageError } from '../command.ts'
import { parseProfile, readProfile } from './profile-file.ts'

const folder = new URL('profiles/', import.meta.url)
const names = readdirSync(folder).map(file => file.replace('.json', ''))

const valid = {
  version: 1,
  product: 'Acme',
  external_id: { columns: ['Id'] },
  fields: { email: ['Email'], 'attribute_values.city': ['City'] },
  answers: [{ channel: 'email', column: 'Consent', words: { yes: 'grant' } }],
}
const parse = (profile: unknown) => parseProfile(Buffer.from(JSON.stringify(profile)), 'mine.json')
const withRule = (rule: object) => ({ ...valid, answers: [{ ...valid.answers[0], ...rule }] })

describe('a profile', () => {
  it.each(names)('%s is valid, says what is not certain, and grants by no word of refusal', async name => {
    const profile = await readProfile(name, path => path)
    expect(profile.notes!.join()).toContain('Not certain')
    const grants = profile.answers.flatMap(({ words }) =>
      Object.entries(words).flatMap(([word, outcome]) => (outcome === 'grant' ? [word] : [])),
    )
    expect(grants.length).toBeGreaterThan(0)
    for (const word of grants) expect(['SUBSCRIBED', 'subscribed', 'User clicked confirmation']).toContain(word)
  })

  it('is read from a file of one’s own', async () => {
    const path = fileURLToPath(new URL('klaviyo.json', folder))
    const own = await readProfile('./mine.json', () => path)
    expect(own).toEqual(JSON.parse(readFileSync(path, 'utf8')))
  })

  it('is refused by its name if there is none, with the names of those that exist', async () => {
    await expect(readProfile('clavio', path => path)).rejects.toThrow(UsageError)
    await expect(readProfile('clavio', path => path)).rejects.toThrow('Use hubspot, klaviyo, mailchimp, or a file')
    await expect(readProfile('./none.json', path => path)).rejects.toThrow('The file ./none.json does not exist.')
  })

  it.each([
    ['another version', { ...valid, version: 2 }, '/version'],
    ['a missing product', { ...valid, product: undefined }, '/product'],
    ['an unknown member', { ...valid, colour: 'red' }, '/colour'],
    ['no answers', { ...valid, answers: [] }, '/answers'],
    ['an unknown meaning', withRule({ words: { yes: 'maybe' } }), '/answers/0/words/yes'],
    ['an unknown channel', withRule({ channel: 'fax' }), '/answers/0/channel'],
    ['a method that claims more', withRule({ method: 'web_form' }), '/answers/0/method'],
    ['a summary flag as field', { ...valid, fields: { email_consent: ['Consent'] } }, '/fields/email_consent'],
    ['a field of a phone', { ...valid, fields: { mobile_number: ['Phone'] } }, '/fields/mobile_number'],
    ['a column and a status', { ...withRule({ status: true }), statuses: ['yes'] }, '/answers/0 '],
    ['neither column nor status', withRule({ column: undefined }), '/answers/0 '],
    ['no words', withRule({ words: {} }), '/answers/0/words'],
    ['a word twice', withRule({ words: { 'not-yet': 'none', NOT_YET: 'grant' } }), '/answers/0/words'],
    ['a * within a column', withRule({ column: 'Opt*in' }), '/answers/0/column'],
    ['an unknown status', withRule({ column: undefined, status: true }), '/answers/0/words/yes'],
    [
      'two ways to decide the method',
      withRule({ method: 'import', double_opt_in: { asked: 'a', asked_ip: 'b', confirmed: 'c', confirmed_ip: 'd' } }),
      '/answers/0/double_opt_in',
    ],
  ])('is refused with %s, by the path of the value', (_, profile, path) => {
    expect(() => parse(profile)).toThrow(`The profile mine.json cannot be used:\n  ${path}`)
  })

  it('is refused if it is no JSON', () => {
    expect(() => parseProfile(Buffer.from('version: 1'), 'mine.json')).toThrow('mine.json cannot be used')
  })

  it('is documented by an example that is valid', () => {
    const document = readFileSync(new URL('../../docs/moving-in.md', import.meta.url), 'utf8')
    const [, example = ''] = /```json\n([\s\S]*?)```/.exec(document)!
    expect(parseProfile(Buffer.from(example), 'docs/moving-in.md').product).toBe('Acme')
  })

  it('is accepted with the fewest members', () => {
    expect(parse(valid)).toEqual(valid)
  })
})
