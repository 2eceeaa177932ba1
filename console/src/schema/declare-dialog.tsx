import { type DeclareBody, declarableTypes, type ObservedKey } from '@kith/client'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Select, TextField } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { Flag } from './attribute-form.tsx'
import { fieldErrors, isShownAtFields, useDefinitionWrite } from './definitions.ts'
import { FitResult } from './fit-result.tsx'
import { messages } from './messages.ts'
import styles from './schema.module.css'

type Declaration = Pick<DeclareBody, 'type'> & Required<Pick<DeclareBody, 'cardinality' | 'indexed' | 'name'>>

const fields = ['type', 'cardinality', 'indexed', 'name']

/** The type that most of the observed values have. */
function likelyDeclaration({ key, types }: ObservedKey): Declaration {
  const [type] = Object.entries(types).toSorted(([, one], [, other]) => other - one)[0]!
  const isMany = type === 'array'
  const plain = declarableTypes.find(known => known === type) ?? (isMany ? 'text' : 'json')
  return { type: plain, cardinality: isMany ? 'many' : 'one', indexed: false, name: key }
}

/** Declares an observed key, after it has shown which of the stored values would not fit. */
export function DeclareDialog({
  owner,
  observed,
  onClose,
}: {
  owner: string
  observed: ObservedKey
  onClose: () => void
}) {
  const texts = useMessages(messages)
  const [declaration, setDeclaration] = useState(() => likelyDeclaration(observed))
  const { key } = observed
  const body = { owner, key, ...declaration, name: declaration.name.trim() || key }
  const preview = useMutation({ mutationFn: () => client.schema.declare(body, { dryRun: true }) })
  const declare = useDefinitionWrite(() => client.schema.declare(body))
  const set = (change: Partial<Declaration>) => {
    setDeclaration({ ...declaration, ...change })
    preview.reset()
    declare.reset()
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    preview.mutate()
  }
  const error = declare.error ?? preview.error
  return (
    <Dialog title={texts.declareKey(key)} isOpen onClose={onClose}>
      <form noValidate className={styles.form!} onSubmit={submit}>
        <DeclarationFields declaration={declaration} set={set} errors={fieldErrors(error)} />
        {error && !isShownAtFields(error, fields) && <Problem error={error} />}
        {preview.isSuccess && <FitResult owner={owner} declared={preview.data} />}
        <Actions>
          <Button onPress={onClose}>{texts.cancel}</Button>
          <Button type="submit" {...(!preview.isSuccess && { look: 'primary' as const })} isPending={preview.isPending}>
            {texts.preview}
          </Button>
          {preview.isSuccess && (
            <Button
              look="primary"
              isPending={declare.isPending}
              onPress={() => declare.mutate(undefined, { onSuccess: onClose })}
            >
              {texts.declare}
            </Button>
          )}
        </Actions>
      </form>
    </Dialog>
  )
}

type DeclarationFieldsProps = {
  declaration: Declaration
  set: (change: Partial<Declaration>) => void
  errors: Partial<Record<string, string>>
}

function DeclarationFields({ declaration, set, errors }: DeclarationFieldsProps) {
  const texts = useMessages(messages)
  return (
    <>
      <Select
        label={texts.type}
        options={declarableTypes.map(type => ({ value: type, label: texts.types[type] }))}
        value={declaration.type}
        onChange={type => set({ type })}
        error={errors.type}
      />
      <Select
        label={texts.cardinality}
        options={[
          { value: 'one', label: texts.one },
          { value: 'many', label: texts.many },
        ]}
        value={declaration.cardinality}
        onChange={cardinality => set({ cardinality })}
        error={errors.cardinality}
      />
      <TextField label={texts.name} value={declaration.name} onChange={name => set({ name })} error={errors.name} />
      <Flag
        isSelected={declaration.indexed}
        onChange={indexed => set({ indexed })}
        help={texts.indexedHelp}
        error={errors.indexed}
      >
        {texts.indexed}
      </Flag>
    </>
  )
}
