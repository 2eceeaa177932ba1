import { getRouteApi } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import { useShortcut } from '../app/keys.tsx'
import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { messages } from './messages.ts'

const route = getRouteApi('/shell/records/$stackKey')

/** Finds records by the words of their searchable attributes. */
export function SearchField({ text }: { text: string }) {
  const texts = useMessages(messages)
  const navigate = route.useNavigate()
  const input = useRef<HTMLInputElement>(null)
  const [typed, setTyped] = useState(text)
  useShortcut('/', texts.search, () => input.current?.focus())
  const search = (words: string) =>
    // A search has an order of its own.
    navigate({
      search: ({ filter }) => ({ ...(filter && { filter }), ...(words.trim() !== '' && { text: words.trim() }) }),
    })
  return (
    <Form onSubmit={() => search(typed)}>
      <TextField
        aria-label={texts.search}
        placeholder={texts.search}
        type="search"
        value={typed}
        onChange={setTyped}
        inputRef={input}
      />
      <Button type="submit">{texts.find}</Button>
      {text !== '' && <Button onPress={() => search('')}>{texts.clearSearch}</Button>}
    </Form>
  )
}
