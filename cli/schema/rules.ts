import { findRuleFaults } from '../../src/attributes/rules.ts'
import { peopleKey } from '../../src/organizations/definitions.ts'
import { parseLabel } from '../../src/stacks/label.ts'
import { type Detail, pointer } from '../../src/values/errors.ts'
import { attributeName, type Declared, type DeclaredAttribute, type DeclaredConsentType } from './declared.ts'

/** Finds the faults that the service refuses in any organization, each with its JSON Pointer into the file. */
export function findFaults({ stacks, attributes, consent_types, segments = [] }: Declared): Detail[] {
  return [
    ...stacks.flatMap(({ key, kind, retention_days, label }, index) => [
      ...(key === peopleKey
        ? [
            {
              path: pointer('stacks', index, 'key'),
              message: 'is reserved: people are not a stack. Choose another key',
            },
          ]
        : []),
      ...(kind === 'item' && retention_days !== null
        ? [{ path: pointer('stacks', index, 'retention_days'), message: 'applies to event stacks only' }]
        : []),
      ...findLabelFormFaults(label).map(message => ({ path: pointer('stacks', index, 'label'), message })),
    ]),
    ...findRepeatedNames('stacks', stacks, ({ key }) => key),
    ...findRepeatedNames('attributes', attributes, attributeName),
    ...findRepeatedNames('consent_types', consent_types, ({ key }) => key),
    ...findRepeatedNames('segments', segments, ({ key }) => key),
    ...attributes.flatMap(findAttributeFaults),
    ...consent_types.flatMap(findConsentTypeFaults),
    ...findSecondDefaults(consent_types),
  ]
}

/** Checks only the form of a label. Only the organization knows which names are declared. */
function findLabelFormFaults(label: string | null): string[] {
  const parsed = label === null ? undefined : parseLabel(label)
  return parsed && 'fault' in parsed ? [parsed.fault] : []
}

function findRepeatedNames<T>(list: keyof Declared, definitions: T[], nameOf: (definition: T) => string): Detail[] {
  const names = definitions.map(nameOf)
  return names.flatMap((name, index) =>
    names.indexOf(name) < index ? [{ path: pointer(list, index, 'key'), message: `declares ${name} again` }] : [],
  )
}

function findAttributeFaults(attribute: DeclaredAttribute, index: number): Detail[] {
  const { type, target_stack, indexed, searchable } = attribute
  const fault = (field: string, message: string) => ({ path: pointer('attributes', index, field), message })
  return [
    ...(type === 'stack' && !target_stack ? [fault('target_stack', 'is required for type `stack`')] : []),
    ...(type !== 'stack' && target_stack ? [fault('target_stack', 'applies only to type `stack`')] : []),
    ...(type === 'json' && indexed
      ? [fault('indexed', 'cannot be true for type `json`, which has no order: index a value of its own key')]
      : []),
    ...(type !== 'text' && searchable ? [fault('searchable', 'can be true only for type `text`')] : []),
    ...findRuleFaults(attribute).map(({ path, message }) => ({ path: pointer('attributes', index, ...path), message })),
  ]
}

function findConsentTypeFaults({ mandatory, state, channels }: DeclaredConsentType, index: number): Detail[] {
  return channels.flatMap(({ channel, is_default }, channelIndex) => {
    const fault = (field: string, message: string) => ({
      path: pointer('consent_types', index, 'channels', channelIndex, field),
      message,
    })
    const first = channels.findIndex(other => other.channel === channel)
    return [
      ...(first < channelIndex ? [fault('channel', 'is given twice')] : []),
      ...(is_default && mandatory ? [fault('is_default', 'a mandatory type cannot be the default of a channel')] : []),
      ...(is_default && state === 'archived'
        ? [fault('is_default', 'an archived type cannot be the default of a channel')]
        : []),
    ]
  })
}

/** Finds second defaults of a channel. The service would accept them and keep only the last one. */
function findSecondDefaults(types: DeclaredConsentType[]): Detail[] {
  const defaults = types.flatMap(({ key, channels }, index) =>
    channels.flatMap(({ channel, is_default }, channelIndex) =>
      is_default ? [{ key, index, channel, channelIndex }] : [],
    ),
  )
  return defaults.flatMap(({ key, index, channel, channelIndex }) => {
    const first = defaults.find(each => each.channel === channel)!
    if (first.key === key) return []
    const path = pointer('consent_types', index, 'channels', channelIndex, 'is_default')
    return [{ path, message: `${first.key} is already the default of ${channel}` }]
  })
}
