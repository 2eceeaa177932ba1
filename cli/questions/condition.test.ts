import { describe, expect, it } from 'vitest'
import { newPlainCommand } from '../kith-command.ts'
import { type ConditionOptions, conditionsOfPeople, readCondition } from './condition.ts'

/** The filter that the options of a command line form. */
const filterOf = (...words: string[]) => {
  const { command } = conditionsOfPeople(newPlainCommand({}, 'list', 'Lists people.'))
  command.exitOverride().configureOutput({ writeErr() {} })
  return readCondition({}, command.parse(words, { from: 'user' }).opts<ConditionOptions>())
}

describe('a condition of the command line', () => {
  it.each([
    [['last_name=Lovelace'], { last_name: 'Lovelace' }],
    [['external_id=42'], { external_id: '42' }],
    [['mobile_number="42"'], { mobile_number: '42' }],
    [['email=null'], { email: null }],
    [['sms_consent=true'], { sms_consent: true }],
    [['attribute_values.total=10'], { 'attribute_values.total': 10 }],
    [['attribute_values.zip=01234'], { 'attribute_values.zip': '01234' }],
    [['attribute_values.zip="12345"'], { 'attribute_values.zip': '12345' }],
    [['attribute_values.note=a=b'], { 'attribute_values.note': 'a=b' }],
    [['attribute_values.note='], { 'attribute_values.note': '' }],
    [['attribute_values.note={"a":1}'], { 'attribute_values.note': '{"a":1}' }],
    [['first_name=A', 'last_name=B'], { $and: [{ first_name: 'A' }, { last_name: 'B' }] }],
  ])('is parsed: --where %j', async (pairs, filter) => {
    expect(await filterOf(...pairs.flatMap(pair => ['--where', pair]))).toEqual(filter)
  })

  it('joins a segment, a filter and pairs, and is undefined without any', async () => {
    const filter = await filterOf('--where', 'language=en', '--filter', '{"$not":{"email":null}}', '--segment', 'vips')
    expect(filter).toEqual({ $and: [{ $segment: 'vips' }, { $not: { email: null } }, { language: 'en' }] })
    expect(await filterOf()).toBeUndefined()
  })

  it('refuses a pair without a field, and a filter that is not JSON', async () => {
    expect(() => filterOf('--where', '=x')).toThrow('field=value')
    await expect(filterOf('--filter', '{')).rejects.toThrow('--filter is not JSON')
    await expect(filterOf('--filter', '@no-such-file.json')).rejects.toThrow('does not exist')
  })
})
