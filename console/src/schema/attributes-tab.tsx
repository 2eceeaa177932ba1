import type { Attribute, Definitions, Stack } from '@kith/client'
import { Link } from '@tanstack/react-router'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { OwnerName } from '../entity/entity-link.tsx'
import { LinkButton } from '../ui/button.tsx'
import { DialogButton } from '../ui/dialog.tsx'
import { Badge, EmptyState, Section } from '../ui/page.tsx'
import { Table } from '../ui/table.tsx'
import { Rules } from './attribute-page.tsx'
import { Archived } from './definition-page.tsx'
import { messages } from './messages.ts'
import { OwnerColumns } from './owner-columns.tsx'
import { StackDialog } from './stack-dialog.tsx'

/** The attributes of people and of each stack. */
export function AttributesTab({ definitions }: { definitions: Definitions }) {
  const texts = useMessages(messages)
  const mayWrite = useScope('schema:write')
  return (
    <OwnerColumns
      definitions={definitions}
      tab="attributes"
      action={
        mayWrite && <DialogButton dialog={close => <StackDialog onClose={close} />}>{texts.newStack}</DialogButton>
      }
    >
      {owner => <OwnerAttributes definitions={definitions} owner={owner} />}
    </OwnerColumns>
  )
}

function OwnerAttributes({ definitions, owner }: { definitions: Definitions; owner: string }) {
  const texts = useMessages(messages)
  const mayWrite = useScope('schema:write')
  const stack = definitions.stacks.find(({ key }) => key === owner)
  const attributes = definitions.attributes.filter(attribute => attribute.owner === owner)
  const actions = mayWrite && (
    <>
      {stack && (
        <DialogButton dialog={close => <StackDialog stack={stack} onClose={close} />}>{texts.editStack}</DialogButton>
      )}
      <LinkButton to="/schema/new-attribute" search={{ owner }} look="primary">
        {texts.newAttribute}
      </LinkButton>
    </>
  )
  return (
    <Section title={stack?.name ?? texts.people} actions={actions}>
      {stack && <StackFacts stack={stack} />}
      {attributes.length === 0 ? (
        <EmptyState title={texts.noAttributes}>{texts.noAttributesAdvice}</EmptyState>
      ) : (
        <AttributeTable attributes={attributes} />
      )}
    </Section>
  )
}

function StackFacts({ stack }: { stack: Stack }) {
  const texts = useMessages(messages)
  const mayReadRecords = useScope('records:read')
  return (
    <div className="row centered">
      <code>{stack.key}</code>
      <Badge>{texts.kinds[stack.kind]}</Badge>
      {stack.retention_days !== null && <Badge kind="caution">{texts.erasedAfter(stack.retention_days)}</Badge>}
      {mayReadRecords && (
        <Link to="/records/$stackKey" params={{ stackKey: stack.key }}>
          {texts.showRecords}
        </Link>
      )}
    </div>
  )
}

function AttributeTable({ attributes }: { attributes: readonly Attribute[] }) {
  const texts = useMessages(messages)
  const headers = [texts.name, texts.key, texts.type, texts.values, texts.indexed, texts.rules]
  return (
    <Table label={texts.attributes} headers={headers}>
      {attributes.map(attribute => (
        <tr key={attribute.id}>
          <th scope="row">
            <Link to="/schema/attributes/$attributeId" params={{ attributeId: String(attribute.id) }}>
              <bdi>{attribute.name}</bdi>
            </Link>{' '}
            {attribute.state === 'archived' && <Archived />}
          </th>
          <td>
            <code>{attribute.key}</code>
          </td>
          <td>
            <TypeOf attribute={attribute} />
          </td>
          <td>{texts[attribute.cardinality]}</td>
          <td>{attribute.indexed ? texts.yes : texts.no}</td>
          <td>
            <Rules attribute={attribute} />
          </td>
        </tr>
      ))}
    </Table>
  )
}

/** The type of an attribute. A relationship links to its target. */
function TypeOf({ attribute: { type, target_stack } }: { attribute: Attribute }) {
  const texts = useMessages(messages)
  if (type !== 'person' && type !== 'stack') return <>{texts.types[type]}</>
  const owner = target_stack ?? 'people'
  return (
    <>
      {texts.linkTo}{' '}
      <Link to="/schema" search={{ tab: 'attributes', owner }}>
        <OwnerName owner={owner} />
      </Link>
    </>
  )
}
