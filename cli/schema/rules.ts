import { type Detail, pointer } from '../../src/errors.ts'
import { peopleKey } from '../../src/organizations/definitions.ts'
import { type Declared, type DeclaredAttribute, type DeclaredConsentType, nameOf } from './declared.ts'

/** Finds the faults that the service would refuse in any organization, each with its JSON Pointer into the file. */
export function faultsWithin({ stacks, attributes, consent_types }: Declared): Detail[] {
  return [
    ...stacks.flatMap(({ key }, index) =>
      key === peopleKey ? [{ path: pointer('stacks', index, 'key'), message: 'is reserved: people are not a stack' }] : [],
    ),
    ...repeated('stacks', stacks, ({ key }) => key),
    ...repeated('attributes', attributes, nameOf),
    ...repeated('consent_types', consent_types, ({ key }) => key),
    ...attributes.flatMap(faultsOfAttribute),
    ...consent_types.flatMap(faultsOfConsentType),
    ...secondDefaults(consent_types),
  ]
}

function repeated<T>(list: keyof Declared, definitions: T[], nameOf: (definition: T) => string): Detail[] {
  const names = definitions.map(nameOf)
  return names.flatMap((name, index) =>
    names.indexOf(name) < index ? [{ path: pointer(list, index, 'key'), message: `declares ${name} again` }] : [],
  )
}

function faultsOfAttribute({ type, target_stack, indexed }: DeclaredAttribute, index: number): Detail[] {
  const fault = (field: string, message: string) => ({ path: pointer('attributes', index, field), message })
  return [
    ...(type === 'stack' && !target_stack ? [fault('target_stack', 'is required for type `stack`')] : []),
    ...(type !== 'stack' && target_stack ? [fault('target_stack', 'is allowed only for type `stack`')] : []),
    ...(type === 'json' && indexed ? [fault('indexed', 'cannot be true for type `json`, which has no order')] : []),
  ]
}

function faultsOfConsentType({ mandatory, state, channels }: DeclaredConsentType, index: number): Detail[] {
  return channels.flatMap(({ channel, is_default }, place) => {
    const fault = (field: string, message: string) => ({
      path: pointer('consent_types', index, 'channels', place, field),
      message,
    })
    const first = channels.findIndex(other => other.channel === channel)
    return [
      ...(first < place ? [fault('channel', 'is given twice')] : []),
      ...(is_default && mandatory ? [fault('is_default', 'a mandatory type cannot be the default of a channel')] : []),
      ...(is_default && state === 'archived'
        ? [fault('is_default', 'an archived type cannot be the default of a channel')]
        : []),
    ]
  })
}

/** Finds second defaults of a channel. The service would accept them and keep only the last one. */
function secondDefaults(types: DeclaredConsentType[]): Detail[] {
  const defaults = types.flatMap(({ key, channels }, index) =>
    channels.flatMap(({ channel, is_default }, place) => (is_default ? [{ key, index, channel, place }] : [])),
  )
  return defaults.flatMap(({ key, index, channel, place }) => {
    const first = defaults.find(each => each.channel === channel)!
    if (first.key === key) return []
    const path = pointer('consent_types', index, 'channels', place, 'is_default')
    return [{ path, message: `${first.key} is already the default of ${channel}` }]
  })
}
