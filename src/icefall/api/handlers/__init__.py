"""The functions behind the endpoint table: parameters and readers in, results out."""
