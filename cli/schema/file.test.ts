import { expect, it } from 'vitest'
import { parseSchemaFile, SchemaFileError } from './file.ts'

const marketing = {
  key: 'marketing',
  channels: [
    { channel: 'email', is_default: true },
    { channel: 'sms', is_default: true },
  ],
}
const orders = { key: 'orders', kind: 'item' }
const total = { owner: 'orders', key: 'total', type: 'number' }

/** What is not told is as in a new organization. */
const fileOf = (content: object) => ({
  ...{ version: 1, stacks: [], attributes: [], consent_types: [marketing] },
  ...content,
})

/** The paths that the refusal of a file names. */
function faultsOf(text: string): string[] {
  try {
    parseSchemaFile(Buffer.from(text), 'shop.json')
    return []
  } catch (error) {
    expect(error).toBeInstanceOf(SchemaFileError)
    const { message } = error as SchemaFileError
    expect(message).toMatch(/^shop\.json cannot be used:\n/)
    return [...message.matchAll(/^ {2}(\/\S*) \S/gm)].map(([, path]) => path!)
  }
}

it('reads a file as the service reads a body: trimmed, and what is left out has its default', () => {
  const file = fileOf({ stacks: [{ ...orders, name: ' Orders ' }], attributes: [total] })
  expect(parseSchemaFile(Buffer.from(JSON.stringify(file)), 'shop.json')).toEqual({
    stacks: [{ ...orders, name: 'Orders' }],
    attributes: [
      {
        ...{ ...total, name: 'total', description: null, target_stack: null },
        ...{ cardinality: 'one', indexed: false, state: 'active' },
      },
    ],
    consent_types: [
      { ...marketing, name: 'marketing', description: null, mandatory: false, default_state: false, state: 'active' },
    ],
  })
})

it.each<[string, object | string, string[]]>([
  ['no JSON', '{', ['/']],
  ['a key twice', '{"version": 1, "version": 1}', ['/version']],
  ['another version', { version: 2 }, ['/version']],
  ['an unknown key', { stacks: [{ ...orders, owner: 'me' }] }, ['/stacks/0/owner']],
  ['people as a stack', { stacks: [{ ...orders, key: 'people' }] }, ['/stacks/0/key']],
  ['a stack twice', { stacks: [orders, orders] }, ['/stacks/1/key']],
  ['an attribute twice', { stacks: [orders], attributes: [total, total] }, ['/attributes/1/key']],
  ['an index of JSON', { attributes: [{ ...total, type: 'json', indexed: true }] }, ['/attributes/0/indexed']],
  ['no target', { attributes: [{ ...total, type: 'stack' }] }, ['/attributes/0/target_stack']],
  ['a target of a number', { attributes: [{ ...total, target_stack: 'orders' }] }, ['/attributes/0/target_stack']],
  [
    'a default that is mandatory',
    { consent_types: [{ ...marketing, mandatory: true }] },
    ['/consent_types/0/channels/0/is_default', '/consent_types/0/channels/1/is_default'],
  ],
  [
    'two defaults of a channel, a channel twice, an archived default',
    {
      consent_types: [
        marketing,
        { key: 'news', channels: [{ channel: 'sms', is_default: true }, { channel: 'sms' }] },
        { key: 'old', state: 'archived', channels: [{ channel: 'email', is_default: true }] },
      ],
    },
    [
      '/consent_types/1/channels/1/channel',
      '/consent_types/2/channels/0/is_default',
      '/consent_types/1/channels/0/is_default',
      '/consent_types/2/channels/0/is_default',
    ],
  ],
])('refuses a file with %s, and names the place', (_, content, paths) => {
  expect(faultsOf(typeof content === 'string' ? content : JSON.stringify(fileOf(content)))).toEqual(paths)
})
